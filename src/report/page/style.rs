//! How a page looks, and its own script: it sorts, filters, and unpacks long tables. Both stand in the page; nothing
//! else is loaded, and a policy with the script's hash makes the browser
//! refuse any other script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::report::chart::palette;

/// Text stands out from paper at least 4.5 to 1, light and dark; GREY of the palette is on paper only.
const SHEET: &str = "\
:root{--paper:#fff;--text:#1c2024;--grey:#5d6368;--line:#c9ced3;--soft:#f3f4f6;--bad:#a3160f;--link:#1b5e9e}
@media screen and (prefers-color-scheme:dark){:root{--paper:#15181c;--text:#e6e8ea;--grey:#a3a9af;--line:#454c54;\
--soft:#1e2227;--bad:#ff9b90;--link:#7fb8f0}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1rem;background:var(--paper);color:var(--text);\
font:1rem/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.35rem;line-height:1.3;margin:.5rem 0}
h2{font-size:1.1rem;margin:1.5rem 0 .5rem}
h3{font-size:1rem;margin:1rem 0 .25rem}
p{margin:.5rem 0;max-width:46rem}
.grey,caption,figcaption{color:var(--grey)}
[hidden]{display:none}
label{display:inline-block;margin:.5rem 1rem .5rem 0}
label select,label input,code+button,p>button{font:inherit;max-width:100%}
.banner{border-left:.3rem solid var(--bad);background:var(--soft);padding:.5rem .75rem;max-width:none}
.bad{color:var(--bad);font-weight:700}
dl.strip{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.5rem 1rem;margin:1rem 0;\
padding:.75rem;background:var(--soft)}
dl.strip div{min-width:0}
dt{font-size:.85rem;font-weight:600}
dd{margin:0}
.scroll{overflow-x:auto;margin:.5rem 0}
figure{margin:1rem 0}
figure svg{display:block;width:100%;min-width:40rem;height:auto}
.two{display:flex;flex-wrap:wrap;gap:1rem}
.two figure{flex:1 1 24rem;min-width:0;max-width:36rem;margin:0}
.two figure svg{min-width:min(20rem,100%)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}
caption{text-align:left;padding:.25rem 0}
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th[scope=row],th.words,td.reason,td.left,tr>:first-child{text-align:left;white-space:normal;min-width:7rem}
th.words{font-weight:400;color:var(--grey)}
td.reason{min-width:16rem}
tr.gone td,tr.gone th{background:repeating-linear-gradient(135deg,transparent 0 6px,var(--soft) 6px 12px)}
th button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer;\
text-decoration:underline dotted}
th[aria-sort=ascending] button::after{content:' \\2191'}
th[aria-sort=descending] button::after{content:' \\2193'}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
details{border-top:1px solid var(--line);padding:.5rem 0}
summary{cursor:pointer;font-weight:600}
details dl{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);gap:.25rem 1rem}
code,pre{font-family:ui-monospace,monospace;font-size:.88rem}
pre{white-space:pre-wrap;margin:.5rem 0}
@media (max-width:30rem){details dl{grid-template-columns:1fr}}
@media (forced-colors:active){svg{forced-color-adjust:none}}
@media print{section[hidden]{display:block}label,p>button,code+button{display:none}\
body{max-width:none;font-size:10pt}.scroll{overflow:visible}\
figure,tr{break-inside:avoid}\
figure svg{min-width:0}details::details-content{display:block;content-visibility:visible}\
th button{text-decoration:none}}
";

/// Without it headings are text, all measures are shown, and long tables name the command that prints them.
const SCRIPT: &str = "\
for(const table of document.querySelectorAll('table.sorted')){
const heads=table.tHead?[...table.tHead.rows[0].cells]:[];
heads.forEach((head,place)=>{
const button=document.createElement('button');
button.type='button';
button.append(...head.childNodes);
head.append(button);
button.addEventListener('click',()=>{
const up=head.getAttribute('aria-sort')!=='ascending';
for(const other of heads)other.removeAttribute('aria-sort');
head.setAttribute('aria-sort',up?'ascending':'descending');
const key=row=>{const cell=row.cells[place];return cell&&cell.dataset.v!==undefined?Number(cell.dataset.v):null};
const text=row=>row.cells[place]?row.cells[place].textContent:'';
for(const body of table.tBodies){
const rows=[...body.querySelectorAll('tr.row')];
rows.sort((one,other)=>{
const a=key(one),b=key(other);
if(a!==null&&b!==null)return up?a-b:b-a;
if(a!==null||b!==null)return a!==null?-1:1;
return up?text(one).localeCompare(text(other)):text(other).localeCompare(text(one))});
body.append(...rows)}})})}
const add=(name,words,before)=>{const one=document.createElement(name);one.append(words);before.before(one);return one};
const state={measure:'',filter:''};
const decoded=text=>{try{return decodeURIComponent(text)}catch{return ''}};
for(const part of location.hash.slice(1).split(',')){
const [name,value]=part.split('=').map(decoded);
if(value===undefined)state.measure=name;else if(name==='filter')state.filter=value}
const sections=[...document.querySelectorAll('section[data-measure]')];
const measures=[...new Set(sections.map(one=>one.dataset.measure))];
const apply=()=>{
for(const one of sections)one.hidden=state.measure!==''&&one.dataset.measure!==state.measure;
const words=state.filter.toLowerCase();
for(const row of document.querySelectorAll('tr.row'))\
row.hidden=!row.cells[0].textContent.toLowerCase().includes(words)};
const choose=()=>{
const told=[state.measure,state.filter&&'filter='+encodeURIComponent(state.filter)].filter(one=>one);
history.replaceState(null,'',told.length?'#'+told.join(','):location.pathname+location.search);
apply()};
if(!measures.includes(state.measure))state.measure='';
if(measures.length>1){
const label=add('label','Measure ',sections[0]);
const select=document.createElement('select');
for(const name of ['',...measures])\
select.append(new Option(name==='cpu'?'CPU':name||'all',name,false,name===state.measure));
select.addEventListener('change',()=>{state.measure=select.value;choose()});
label.append(select)}
const first=document.querySelector('table.sorted');
if(first&&first.querySelectorAll('tr.row').length>3){
const label=add('label','Filter targets ',first.closest('div.scroll'));
const input=document.createElement('input');
input.type='search';
input.value=state.filter;
input.addEventListener('input',()=>{state.filter=input.value;choose()});
label.append(input)}else state.filter='';
apply();
for(const code of document.querySelectorAll('code.command')){
if(!navigator.clipboard)break;
const button=document.createElement('button');
button.type='button';
button.textContent='Copy';
button.addEventListener('click',()=>navigator.clipboard.writeText(code.textContent).then(()=>{
button.textContent='Copied'},()=>{button.textContent='Not allowed'}));
code.after(' ',button)}
const ROWS=200;
const unpack=async table=>{
const bytes=Uint8Array.from(atob(table.dataset.rows),one=>one.charCodeAt(0));
const stream=new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
const rows=(await new Response(stream).text()).split('\\n').slice(0,-1);
const bar=document.createElement('p');
const said=document.createElement('span');
said.setAttribute('role','status');
let from=0;
const show=step=>{
from=Math.max(0,Math.min(from+step,ROWS*Math.floor((rows.length-1)/ROWS)));
table.tBodies[0].innerHTML=rows.slice(from,from+ROWS).join('');
said.textContent=' Rows '+(from+1)+' to '+Math.min(from+ROWS,rows.length)+' of '+rows.length+' '};
for(const [words,step] of [['Before',-ROWS],['Next',ROWS]]){
const button=document.createElement('button');
button.type='button';
button.textContent=words;
button.addEventListener('click',()=>show(step));
bar.append(button);
if(step<0)bar.append(said)}
table.closest('div.scroll').before(bar);
show(0)};
for(const table of document.querySelectorAll('table[data-rows]')){
if(typeof DecompressionStream==='undefined')break;
table.closest('details').addEventListener('toggle',()=>unpack(table),{once:true})}
";

/// The whole document around its title, which is escaped here, and its body, which is HTML.
pub fn document(title: &str, body: &str) -> String {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        STANDARD.encode(Sha256::digest(SCRIPT))
    );
    let page: Markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(SHEET)) (PreEscaped(palette::rules())) }
            }
            body {
                main { (PreEscaped(body)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    format!("{}\n", page.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_the_one_that_the_policy_allows() {
        let page = document("<x>", "<p>body</p>");
        let (_, rest) = page.split_once("<script>").expect("a script");
        let (script, _) = rest.split_once("</script>").expect("its end");
        assert!(page.contains(&format!("script-src 'sha256-{}'", STANDARD.encode(Sha256::digest(script)))), "{page}");
        assert!(page.contains("<title>&lt;x&gt;</title>") && page.contains("default-src 'none'"));
    }

    #[test]
    fn nothing_is_loaded() {
        for text in [SHEET, SCRIPT] {
            for word in ["url(", "@import", "http", "fetch", "import(", "</"] {
                assert!(!text.contains(word), "{word}");
            }
        }
        assert!(SHEET.len() + SCRIPT.len() < 28_000, "{}", SHEET.len() + SCRIPT.len());
    }
}
