// SPDX-License-Identifier: MIT
// BullMQ, by the verbs of bench.c. NODE_PATH says where it is installed.
'use strict'
const fs = require('fs')
const { Queue, Worker } = require('bullmq')

const [verb, ...words] = process.argv.slice(2)
const args = Object.fromEntries(words.map(w => [w.slice(0, w.indexOf('=')), w.slice(w.indexOf('=') + 1)]))
const number = (name, otherwise) => name in args ? Number(args[name]) : otherwise
const nowMs = () => performance.timeOrigin + performance.now()
const until = ms => new Promise(done => setTimeout(done, Math.max(0, ms - nowMs())))
const figure = (name, value) => console.log(name, value)
const connection = { path: args.at, maxRetriesPerRequest: null }
const kind = 'j' + String(number('run', 0) % 1000).padStart(3, '0')
const body = 'a hundred bytes, as everybody measures with'.padEnd(100)
const BULK = 1000, BULKS = 2

function job (prefix, n, dueMs) {
  const jobId = prefix + String(n).padStart(16, '0')
  return { name: 'j', data: body, opts: { jobId, delay: Math.max(0, Math.round(dueMs - Date.now())) } }
}

async function fill (queue, prefix, stepMs, firstMs) {
  const n = number('n'), from = number('from', 0), start = nowMs(), sent = new Set()
  for (let i = 0; i < n; i += BULK) {
    const jobs = []
    for (let k = i; k < Math.min(n, i + BULK); k++) jobs.push(job(prefix, from + k, firstMs + k * stepMs))
    const reply = queue.addBulk(jobs).then(() => sent.delete(reply))
    sent.add(reply)
    if (sent.size >= BULKS) await Promise.race(sent)
  }
  await Promise.all(sent)
  figure('s', (nowMs() - start) / 1e3)
  figure('jobs_s', n * 1e3 / (nowMs() - start))
}

function figureTimes (us) {
  us.sort((a, b) => a - b)
  figure('p50_us', us[us.length >> 1])
  figure('p99_us', us[Math.floor(us.length * 0.99)])
  figure('max_us', us[us.length - 1])
}

async function one (queue) {
  const n = number('n'), us = [], start = nowMs()
  for (let i = 0; i < n; i++) {
    const before = nowMs(), j = job('one-', i, before + 3600000)
    await queue.add(j.name, j.data, j.opts)
    us.push((nowMs() - before) * 1e3)
  }
  figure('jobs_s', n * 1e3 / (nowMs() - start))
  figureTimes(us)
}

async function produce (queue) {
  const n = number('n'), t0 = number('t0'), lead = number('lead', 1000), jitter = number('jitter', 1000)
  const due = i => t0 + Math.floor(i * 1000 / number('rate'))
  const before = i => jitter > 0 ? i * 7919 % 1000 * jitter / 1000 + i * 611953 % 1000 / 1000 : 0
  const plan = Array.from({ length: n }, (_, i) => ({ i, put: due(i) - lead - before(i) }))
  let behind = 0
  plan.sort((a, b) => a.put - b.put)
  for (let k = 0; k < n;) {
    await until(plan[k].put)
    const now = nowMs(), jobs = []
    for (; k < n && plan[k].put <= now; k++) jobs.push(job(kind, plan[k].i, due(plan[k].i)))
    if (jobs.length > 0) await queue.addBulk(jobs)
    if (k > 0) behind = Math.max(behind, nowMs() - plan[k - 1].put)
  }
  figure('behind_ms', behind)
  figure('reached_s', n / (n / number('rate') + (nowMs() - plan[n - 1].put) / 1e3))
}

async function listen () {
  const n = number('n'), started = [], cpu = process.cpuUsage()
  let settled = 0, settledMs = 0, end
  const ended = new Promise(done => { end = done })
  const worker = new Worker('bench', async j => {
    if (j.id.startsWith(kind)) started.push(Number(j.id.slice(4)), nowMs())
  }, { connection, concurrency: number('concurrency', 1), removeOnComplete: { count: 0 } })
  worker.on('completed', () => {
    settledMs = nowMs()
    if (++settled === n) end()
  })
  worker.on('error', e => console.error('bench: BullMQ:', e.message))
  setTimeout(end, Math.max(0, number('until') - nowMs()))
  await ended
  const used = process.cpuUsage(cpu)
  figure('heard', started.length / 2)
  if (started.length > 0) {
    figure('cpu_us_job', (used.user + used.system) / (started.length / 2))
    figure('settled_ms', settledMs - number('t0', 0))
  }
  figure('rss_kib', Math.round(process.memoryUsage.rss() / 1024))
  // as listen.c: number, start, claimed, due, each 8 bytes
  const records = new BigInt64Array(started.length * 2)
  for (let i = 0; i < started.length; i += 2) {
    records[i * 2] = BigInt(started[i])
    records[i * 2 + 1] = BigInt(Math.round(started[i + 1] * 1e3))
  }
  fs.writeFileSync(number('record'), Buffer.from(records.buffer))
}

async function main () {
  setTimeout(() => process.exit(3), 600000).unref()
  const queue = verb === 'listen' ? null : new Queue('bench', { connection })
  if (queue) await queue.waitUntilReady()
  if (verb === 'fill') await fill(queue, 'wait', 1, Date.now() + 3600000)
  else if (verb === 'burst') await fill(queue, kind, 0, number('t0'))
  else if (verb === 'one') await one(queue)
  else if (verb === 'produce') await produce(queue)
  else if (verb === 'listen') await listen()
  else throw new Error('no such verb: ' + verb)
}

main().then(() => process.exit(0), e => {
  console.error('bench: BullMQ:', e.message)
  process.exit(1)
})
