// SPDX-License-Identifier: MIT
// consumer.js SOCKET STREAM GROUP NAME IDLE_MS FILE: one consumer of a group, in a language and with a client that know
// nothing of lapse. For each entry it appends a line "NAME JOB" to FILE, works for a moment, and acknowledges it. What
// another consumer has held for IDLE_MS without an acknowledgement it takes over.
'use strict'
const fs = require('fs')
const Redis = require('ioredis')

const BATCH = 50, WORK_MS = 20, BLOCK_MS = 100
const [socket, stream, group, name, idleMs, file] = process.argv.slice(2)
const redis = new Redis({ path: socket })
const seen = fs.openSync(file, 'a')

async function work (entries) {
  if (entries.length === 0) return
  fs.writeSync(seen, entries.map(([, fields]) => `${name} ${fields[1]}\n`).join(''))
  await new Promise(resolve => setTimeout(resolve, WORK_MS))
  await redis.xack(stream, group, ...entries.map(([entry]) => entry))
}

async function main () {
  await redis.xgroup('CREATECONSUMER', stream, group, name)
  for (let lookMs = 0; ;) {
    if (Date.now() >= lookMs) {
      const [, left] = await redis.xautoclaim(stream, group, name, idleMs, '0', 'COUNT', BATCH)
      await work(left)
      lookMs = Date.now() + idleMs / 10
    }
    const read = await redis.xreadgroup('GROUP', group, name, 'COUNT', BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', stream, '>')
    if (read) await work(read[0][1])
  }
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
