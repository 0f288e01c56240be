#!/usr/bin/env node
// The job `fans` as its users would write it for Node: node fans.js URL FILE.jsonl, as `kvfair data fans` writes it.
//
// URL is redis://host:port or unix:///path (Redis and Valkey, by ioredis; NODE_PATH says where it is, unless it is
// installed here). Prints what fans.py beside it prints.
'use strict';
const { createHash } = require('node:crypto');
const { createReadStream } = require('node:fs');
const { createInterface } = require('node:readline');
const Redis = require('ioredis');

function connect(url) {
  if (url.startsWith('unix://')) return new Redis({ path: decodeURIComponent(url.slice('unix://'.length)) });
  if (url.startsWith('redis://')) return new Redis(url);
  throw new Error(`${url}: this program speaks to Redis and Valkey only`);
}

// In the order of their bytes, which is not that of UTF-16.
function digest(lines) {
  const sorted = lines.map((line) => Buffer.from(line)).sort(Buffer.compare);
  const hash = createHash('sha256');
  for (const line of sorted) hash.update(line);
  return hash.digest('hex');
}

async function main(url, file) {
  const client = connect(url);
  const seen = new Set();
  let users = 0;
  for await (const line of createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Infinity })) {
    const pages = new Set(JSON.parse(line).likes);
    users += 1;
    for (const page of pages) {
      seen.add(page);
      const old = await client.get(page);
      const record = old === null ? { fans: 0, also: {} } : JSON.parse(old);
      record.fans += 1;
      for (const other of pages) {
        if (other !== page) record.also[other] = (record.also[other] ?? 0) + 1;
      }
      await client.set(page, JSON.stringify(record));
    }
  }

  const fans = [];
  const also = [];
  for (const page of seen) {
    const record = JSON.parse(await client.get(page));
    fans.push(`${page}\t${record.fans}\n`);
    for (const [other, count] of Object.entries(record.also)) also.push(`${page}\t${other}\t${count}\n`);
  }
  console.log(`fans ${digest(fans)}\nalso ${digest(also)}`);
  console.log(`users ${users}\npages ${fans.length}\npairs ${also.length / 2}`);
  client.disconnect();
}

main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(String(error));
  process.exit(1);
});
