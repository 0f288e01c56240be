#!/usr/bin/env php
<?php
// The job `fans` as its users would write it in PHP: php fans.php URL FILE.jsonl, as `kvfair data fans` writes it.
//
// URL is redis://host:port, unix:///path (Redis and Valkey, by php-redis), memcached://host:port or
// memcached+unix:///path (by php-memcached). Prints what fans.py beside it prints.

/** A get and a set of bytes by a page's name. */
function connect(string $url): array
{
    [$scheme, $place] = explode('://', $url, 2);
    $path = urldecode($place);
    $host = parse_url($url, PHP_URL_HOST);
    $port = (int) parse_url($url, PHP_URL_PORT);
    if ($scheme === 'redis' || $scheme === 'unix') {
        $client = new Redis();
        $scheme === 'unix' ? $client->connect($path) : $client->connect($host, $port);
        return [fn ($page) => $client->get($page), fn ($page, $value) => $client->set($page, $value)];
    }
    $client = new Memcached();
    // Large values would be compressed, which no other client here does.
    $client->setOptions([Memcached::OPT_COMPRESSION => false, Memcached::OPT_TCP_NODELAY => true]);
    $scheme === 'memcached+unix' ? $client->addServer($path, 0) : $client->addServer($host, $port);
    // Its keys may hold no blanks and nothing but ASCII.
    return [
        fn ($page) => $client->get(rawurlencode($page)),
        fn ($page, $value) => $client->set(rawurlencode($page), $value),
    ];
}

function digest(array $lines): string
{
    sort($lines, SORT_STRING);
    return hash('sha256', implode('', $lines));
}

/** A record's counts are an object in JSON, also where names are numbers or there are none. */
function write(array $record): string
{
    $record['also'] = (object) $record['also'];
    return json_encode($record, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
}

function read(string $value): array
{
    return json_decode($value, true, flags: JSON_THROW_ON_ERROR);
}

[, $url, $file] = $argv;
[$get, $put] = connect($url);
$users = 0;
$seen = [];
foreach (new SplFileObject($file) as $line) {
    if (trim($line) === '') {
        continue;
    }
    $pages = array_unique(read($line)['likes'], SORT_STRING);
    $users++;
    foreach ($pages as $page) {
        $seen[$page] = true;
        $old = $get($page);
        $record = is_string($old) ? read($old) : ['fans' => 0, 'also' => []];
        $record['fans']++;
        foreach ($pages as $other) {
            if ($other !== $page) {
                $record['also'][$other] = ($record['also'][$other] ?? 0) + 1;
            }
        }
        if (!$put($page, write($record))) {
            fwrite(STDERR, "\"$page\" could not be set\n");
            exit(1);
        }
    }
}

$fans = [];
$also = [];
foreach (array_keys($seen) as $page) {
    $record = read($get((string) $page));
    $fans[] = "$page\t{$record['fans']}\n";
    foreach ($record['also'] as $other => $count) {
        $also[] = "$page\t$other\t$count\n";
    }
}
echo 'fans ', digest($fans), "\nalso ", digest($also), "\nusers $users\npages ", count($fans), "\npairs ",
    intdiv(count($also), 2), "\n";
