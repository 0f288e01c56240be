//! Hints about files: data of a user's own, results, pages, sites, and data that was kept.

/// Data and lists of hosts that commands need.
pub const INPUTS: &str = r#"
printf '[{"name": "tea", "likes": ["Tea"]}, {"name": "rain", "likes": ["Tea", "Rain"]}]\n' > array.json
printf '["Tea", "Rain"]\n' > texts.json
printf '[["Tea", "Rain"], ["Tea"]]\n' > lists.json
printf '{\n  "likes": [\n    "Tea", "Rain"\n  ]\n}\n' > many-lines.json
printf '{"user": "ann", "page": "Tea"}\n{"user": "ann", "page": "Rain"}\n' > pairs.jsonl
printf '{"liked": ["Tea"]}\n{"liked": ["Tea", "Rain"]}\n' > liked.jsonl
printf 'user,page\nann,Tea\nbob,Tea\nann,Rain\n' > pairs.csv
printf 'ann,Tea,Rain\nbob,Tea,Wind\ncid,Tea,Rain\ndan,Tea,Rain\nann,Wind,Tea\n' > even.csv
printf 'ann,Tea\nbob,\ncid,\ndan,\n' > users.csv
printf 'ann\tTea\nann\tRain\n' > tabs.txt
iconv -f UTF-8 -t UTF-16 pairs.csv > utf16.csv
printf 'tea in the rain\nrain\n' > messages.txt
printf '0,key7,4,512,1,get,0\n1,key8,4,512,1,get,0\n' > trace.csv
printf '42 8 0 1\n50 8 0 2\n' > trace.arc
printf 'one\ntwo\n' > hosts
cat > other-build <<'END'
exec sed -u 's/"debug_build":true/"debug_build":no/; s/"debug_build":false/"debug_build":true/; s/:no/:false/'
END
"#;

/// Results, pages, sites and kept data that commands need.
pub const RAN: &str = r#"
set -e
for name in one other; do
    kvfair run ngrams ram --messages 5 --blocks 1 --output $name.jsonl --html $name.html
done
kvfair run fans ram --profiles 5,10 --blocks 1 --output sizes.jsonl
kvfair run fans lmdb --profiles 5 --blocks 1 --keep fanned
kvfair run ngrams lmdb --messages 5 --blocks 1 --keep counted
mkdir empty bare hollow broken changed copied big big/kvfair-results bad bad/kvfair-results
cp one.jsonl copied
cp one.jsonl index.jsonl
cat one.jsonl other.jsonl > joined.jsonl
sed 's/^{/{"discarded":true,/' one.jsonl > disturbed.jsonl
sed 's/"method":[0-9]*/"method":1/' one.jsonl > method.jsonl
sed 's/"method":[0-9]*/"method":1/' one.html > method.html
sed 's/"form":[0-9]*/"form":1/' one.html > form.html
sed 's/"kvfair":"[^"]*"/"kvfair":"0.0.1"/; s/"target":/"goal":/' one.jsonl > fields.jsonl
echo '<p>' > none.html
echo no line of it > broken/.kvfair-site
kvfair site changed one.jsonl
echo > changed/one.html
truncate -s 65M big/kvfair-results/durability.ndjson
echo '{"store":"redis"}' > bad/kvfair-results/durability.ndjson
"#;

pub const DATA: &str = r#"
# What jq makes of each is written out: not each machine has it.
refused: kvfair run fans ram --input array.json
hint: jq -c '.[]' FILE | kvfair run fans --input - ...
mended: printf '{"likes":["Tea"]}\n{"likes":["Tea","Rain"]}\n' | kvfair run fans ram --input - --blocks 1

refused: kvfair run fans ram --input texts.json
hint: jq -c '{likes: .}' FILE | kvfair run fans --input - ...
mended: printf '{"likes":["Tea","Rain"]}\n' | kvfair run fans ram --input - --blocks 1

refused: kvfair run fans ram --input lists.json
hint: jq -c '.[]|{likes: .}' FILE | kvfair run fans --input - ...
mended: printf '{"likes":["Tea","Rain"]}\n{"likes":["Tea"]}\n' | kvfair run fans ram --input - --blocks 1

refused: kvfair run ngrams ram --input texts.json
hint: jq -r '.[]' FILE | kvfair run ngrams --input - ...
mended: printf 'Tea\nRain\n' | kvfair run ngrams ram --input - --blocks 1

refused: kvfair run fans ram --input many-lines.json
hint: jq -c . FILE | kvfair run ... --input -
mended: printf '{"likes":["Tea","Rain"]}\n' | kvfair run fans ram --input - --blocks 1

refused: kvfair run fans ram --input pairs.jsonl
hint: jq -r '[.user,.page]|@csv' FILE | kvfair run fans --input - ...
mended: printf '"ann","Tea"\n"ann","Rain"\n' | kvfair run fans ram --input - --blocks 1

refused: kvfair run fans ram --input utf16.csv
hint: iconv -f UTF-16 -t UTF-8 FILE | kvfair run ... --input -
mended: iconv -f UTF-16 -t UTF-8 utf16.csv | kvfair run fans ram --input - --blocks 1

refused: kvfair run fans ram --input liked.jsonl
hint: --field NAME, one of liked
mended: kvfair run fans ram --input liked.jsonl --field liked --blocks 1

refused: kvfair run fans ram --input liked.jsonl --columns 1,2
hint: --field NAME for JSON Lines
mended: kvfair run fans ram --input liked.jsonl --field liked --blocks 1

refused: kvfair run fans ram --input pairs.csv --field page
hint: --columns for CSV and TSV
mended: kvfair run fans ram --input pairs.csv --columns user,page --blocks 1

refused: kvfair run ngrams ram --input messages.txt --format text --columns 1
hint: leave it out, or name another --format
mended: kvfair run ngrams ram --input messages.txt --format text --blocks 1
mended: kvfair run ngrams ram --input messages.txt --format csv --columns 1 --blocks 1

refused: kvfair run fans ram --input pairs.csv --columns user,page --format csv-profiles
hint: leave one out
mended: kvfair run fans ram --input pairs.csv --columns user,page --blocks 1
mended: kvfair run fans ram --input even.csv --format csv-profiles --blocks 1

refused: kvfair run fans ram --input tabs.txt --format csv
hint: its lines have tabs: leave --format out, or --format tsv
mended: kvfair run fans ram --input tabs.txt --blocks 1
mended: kvfair run fans ram --input tabs.txt --format tsv --blocks 1

refused: kvfair run fans ram --input pairs.csv --format tsv
hint: its lines have commas: leave --format out, or --format csv
mended: kvfair run fans ram --input pairs.csv --blocks 1
mended: kvfair run fans ram --input pairs.csv --format csv --blocks 1

refused: kvfair run fans ram --input even.csv
hint: --columns 1,2 where these are the user and the page, or --format csv-profiles
mended: kvfair run fans ram --input even.csv --columns 1,2 --blocks 1
mended: kvfair run fans ram --input even.csv --format csv-profiles --blocks 1

refused: kvfair run fans ram --input users.csv --format csv-pairs
hint: --columns names the user's column and the page's
mended: kvfair run fans ram --input even.csv --format csv-pairs --columns 1,2 --blocks 1

refused: kvfair run ngrams ram --input even.csv
hint: --columns 2 where it is the second; --format text where each line is a message
mended: kvfair run ngrams ram --input even.csv --columns 2 --blocks 1
mended: kvfair run ngrams ram --input even.csv --format text --blocks 1

refused: script -qec 'kvfair run fans ram --input -' /dev/null >&2
hint: give it the data: `... < FILE`
mended: kvfair run fans ram --input - --blocks 1 < pairs.csv

refused: kvfair run fans ram --input pairs.csv --profiles 100 --blocks 1
hint: leave --profiles out to measure all of it
mended: kvfair run fans ram --input pairs.csv --blocks 1

refused: kvfair run trace ram
hint: --input FILE (twitter, libcachesim, oracle, arc; plain, .gz or .zst)
mended: kvfair run trace ram --input trace.csv --blocks 1

refused: kvfair run trace ram --input trace.csv --columns 1
hint: trace takes neither --columns nor --field
mended: kvfair run trace ram --input trace.csv --blocks 1

refused: kvfair run trace ram --input trace.arc --format arc --replay recorded
hint: leave it out
mended: kvfair run trace ram --input trace.arc --format arc --blocks 1

refused: kvfair run trace redis --input trace.csv --format twitter --rtt 0,1ms --replay recorded
hint: name one --rtt, or leave --replay out
mended: kvfair run trace redis --input trace.csv --format twitter --rtt 1ms --replay recorded --list
mended: kvfair run trace redis --input trace.csv --format twitter --rtt 0,1ms --list
"#;

pub const RESULTS: &str = r#"
refused: cd empty && kvfair show
hint: `kvfair run fans` makes some, or name files: `kvfair show FILE`
mended: kvfair show one.jsonl

refused: kvfair show one.jsonl other.jsonl
hint: `kvfair compare ONE.jsonl OTHER.jsonl` holds two against each other
mended: kvfair compare one.jsonl other.jsonl

refused: kvfair show one.html other.html
hint: kvfair show A.html B.html --html OUT.html
mended: kvfair show one.html other.html --html both.html

refused: kvfair show joined.jsonl
hint: show each run's own file; `kvfair compare ONE.jsonl OTHER.jsonl` holds two against each other
mended: kvfair show one.jsonl
mended: kvfair compare one.jsonl other.jsonl

refused: kvfair show disturbed.jsonl
hint: run it again when the machine is quiet
mended: kvfair run ngrams ram --messages 5 --blocks 1

refused: kvfair show method.jsonl
hint: numbers of different methods are never shown together; measure again, or use the kvfair that wrote it
mended: kvfair run ngrams ram --messages 5 --blocks 1

refused: kvfair show fields.jsonl
hint: use the kvfair that wrote it, or measure again
mended: kvfair run ngrams ram --messages 5 --blocks 1

refused: kvfair show one.jsonl --svg one.svg
hint: `kvfair run getset --clients 1,5,20,50` makes a sweep, and `--rate 1k,2k,5k`
mended: kvfair run getset ram --clients 1,5,20,50 --list
mended: kvfair run getset ram --rate 1k,2k,5k --list

refused: kvfair compare one.jsonl other.jsonl --budget 5m
hint: leave it out; two targets in one run are `kvfair compare JOB --base TARGET --head TARGET`
mended: kvfair compare one.jsonl other.jsonl
begun: kvfair compare ngrams --base ram --head array --budget 5m --messages 50

refused: kvfair compare one.jsonl sizes.jsonl
hint: compare runs of one size and one round-trip time each
mended: kvfair compare one.jsonl other.jsonl

# Of one growth it is unclear what grows: exit code 6.
refused: kvfair compare one.jsonl growth.jsonl
hint: `kvfair show` prints them; compare two runs of one job
mended: kvfair show growth.jsonl || test $? = 6
mended: kvfair compare one.jsonl other.jsonl

refused: kvfair show growth.jsonl --all
hint: --json has all numbers, --markdown the table
mended: kvfair show growth.jsonl --json || test $? = 6
mended: kvfair show growth.jsonl --markdown || test $? = 6

refused: kvfair check ram --output checked.jsonl && kvfair show checked.jsonl --svg checked.svg
hint: --html is a page, --json has all numbers
mended: kvfair show checked.jsonl --html checked.html
mended: kvfair show checked.jsonl --json

refused: kvfair compare one.jsonl other.jsonl --fail-if slower:3%
hint: run both again with a longer --budget, --effort normal, or a quieter machine
begun: kvfair compare ngrams --base ram --head lmdb --fail-if slower:3% --effort normal --messages 50
begun: kvfair compare ngrams --base ram --head lmdb --fail-if slower:3% --budget 20m --messages 50

refused: flock other.jsonl kvfair bundle other.jsonl
hint: wait for its end
mended: kvfair bundle other.jsonl

refused: kvfair rerun one.html
hint: a claim needs two targets, blocks enough (--blocks 6), and a target that runs twice in each
begun: kvfair run ngrams ram lmdb --blocks 6 --messages 50

refused: kvfair rerun method.html
hint: use a kvfair of that version: numbers of two methods are not compared
mended: kvfair run ngrams ram --messages 5 --blocks 1

refused: kvfair rerun form.html
hint: use a kvfair of that version, or write the page again from its results: kvfair show RESULTS --html PAGE
mended: kvfair show one.jsonl --html again.html

refused: kvfair reproduce --from one.jsonl
hint: `kvfair show one.jsonl` shows them
mended: kvfair show one.jsonl

refused: kvfair history sizes.jsonl
hint: name results files of `kvfair run`
mended: kvfair history one.jsonl other.jsonl

refused: cd bare && cp ../sizes.jsonl . && mkdir kvfair-results && mv sizes.jsonl kvfair-results && kvfair history
hint: `kvfair run fans` makes some
mended: cd bare && kvfair run fans ram --profiles 5 --blocks 1 && kvfair history

# It goes on: what it says of the file stands beside what was asked for.
refused: cd bad && ! kvfair stores redis
hint: `kvfair crash STORE` tries it again, `kvfair crash --forget STORE` removes a store's lines; remove other
  lines with an editor
mended: cd bad && kvfair crash --forget redis

refused: cd big && kvfair crash --forget redis
hint: move it away
mended: cd big && mv kvfair-results/durability.ndjson . && kvfair stores redis

refused: kvfair clean redis://localhost:1 --of one.jsonl
hint: its run wrote to no store by URL
mended: kvfair show one.jsonl
"#;

pub const SITES: &str = r#"
refused: kvfair site out index.jsonl
hint: give the file another name
mended: mv index.jsonl renamed.jsonl && kvfair site renamed renamed.jsonl

refused: kvfair site out one.jsonl copied/one.jsonl
hint: give one of them another name
mended: mv copied/one.jsonl copied/two.jsonl && kvfair site two one.jsonl copied/two.jsonl

refused: kvfair site out "$(printf 'a\tb').jsonl"
hint: use a name of letters and digits, as in fans.jsonl
mended: cp one.jsonl fans.jsonl && kvfair site letters fans.jsonl

refused: kvfair site one.jsonl other.jsonl
hint: name one that is new, or that `kvfair site` made
mended: kvfair site new other.jsonl
mended: kvfair site new other.jsonl

refused: kvfair site . one.jsonl
hint: name a directory that is new or empty
mended: kvfair site empty one.jsonl

refused: kvfair site broken one.jsonl
hint: name a new directory
mended: kvfair site whole one.jsonl

refused: kvfair site changed one.jsonl
hint: move it away, or name a new directory
mended: mv changed/one.html mine.html && kvfair site changed one.jsonl

refused: kvfair site out none.html
hint: `kvfair show RESULTS --html PAGE` writes one
mended: kvfair show one.jsonl --html written.html && kvfair site written written.html
"#;

pub const KEPT: &str = r#"
refused: kvfair query redis Tea
hint: name one by URL, or STORE:DIR as `kvfair run --keep` printed it
mended: kvfair query lmdb:fanned/lmdb 'Michael Jackson'

refused: kvfair query lmdb:hollow Tea
hint: `kvfair run fans STORE --keep DIR` fills one for `kvfair query`, and `kvfair run lookup STORE --keep DIR` one for
  `kvfair lookup`
mended: kvfair run fans lmdb --profiles 5 --blocks 1 --keep dir && kvfair query lmdb:dir/lmdb 'Michael Jackson'
mended: kvfair run lookup lmdb --messages 20 --blocks 1 --keep read && kvfair lookup lmdb:read/lmdb tea

refused: kvfair lookup lmdb:fanned/lmdb tea
hint: `kvfair run lookup STORE --keep DIR` fills one
mended: kvfair run lookup lmdb --messages 20 --blocks 1 --keep filled && kvfair lookup lmdb:filled/lmdb tea

refused: kvfair query 'lmdb:counted/lmdb?name=mine' tea
hint: kvfair lookup lmdb:counted/lmdb WORD
mended: kvfair lookup lmdb:counted/lmdb tea

refused: kvfair lookup lmdb:counted/lmdb '!!'
hint: a word is a run of a-z, 0-9, #, @ and '
mended: kvfair lookup lmdb:counted/lmdb '#tea'

refused: kvfair run lookup lmdb:counted/lmdb --keep again
hint: leave --keep out
mended: kvfair run lookup lmdb:counted/lmdb --list
"#;
