// SPDX-License-Identifier: MIT
// client.js SCENARIO: the client of tools/examples beside the program `lapse` (LAPSE), on the Redis of LAPSE_URL. Fails
// where they differ.
'use strict'
const assert = require('assert/strict')
const { spawn, spawnSync } = require('child_process')
const { once } = require('events')
const path = require('path')
const Redis = require('ioredis')
const { Queue, recordOf } = require(path.resolve(process.env.LAPSE_TEST_ROOT || '.', 'tools/examples/client.js'))

const HOUR = '+3600000'
const redis = new Redis(process.env.LAPSE_URL)
const queue = name => new Queue(redis, name, process.env.LAPSE_LUA)
const refuses = (call, text) => assert.rejects(call, { message: text })

function lapse (input, ...words) {
  const run = spawnSync(process.env.LAPSE, words, { input, maxBuffer: 1 << 24 })
  assert.equal(run.status, 0, `lapse ${words.join(' ')}: ${run.stderr}`)
  return JSON.parse(run.stdout)
}

const bodyOf = shown => Buffer.from(shown.body ?? shown.body_base64, 'body' in shown ? 'utf8' : 'base64')

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
const bodies = [
  Buffer.alloc(0), Buffer.from('unpaid'), Buffer.from('äöü €'), everyByte, Buffer.from([0]), Buffer.from('\x01\x00'),
  Buffer.from('a\r\nb'), Buffer.alloc(1 << 20, everyByte)
]

// an option of the client with its number, and the same for the program
const headers = [
  [{}, []],
  [{ tries: 1 }, ['--tries', '1']],
  [{ tries: 127 }, ['--tries', '127']],
  [{ tries: 128 }, ['--tries', '128']],
  [{ tries: 16384 }, ['--tries', '16384']],
  [{ tries: 4294967295 }, ['--tries', 'forever']],
  [{ backoffMs: 5000 }, ['--backoff', '5s']],
  [{ backoffMaxMs: 86400000 }, ['--backoff-max', '1d']],
  [{ tries: 20, backoffMs: 5000 }, ['--tries', '20', '--backoff', '5s']],
  [{ backoffMs: 250, backoffMaxMs: 315360000000 }, ['--backoff', '250ms', '--backoff-max', '3650d']],
  [{ tries: 3, backoffMs: 60000, backoffMaxMs: 600000 }, ['--tries', '3', '--backoff', '1m', '--backoff-max', '10m']]
]

async function dump (name) { // all of a queue but its times
  return Promise.all(['due', 'run', 'dead'].map(set => redis.zrange(`lapse:{${name}}:${set}`, 0, -1)))
}

const scenarios = {
  async jobs () {
    const q = queue('q')
    const before = await redis.time()
    const due = await q.schedule('a', HOUR, 'x')
    const after = await redis.time()
    const ms = ([s, us]) => s * 1000 + Math.floor(us / 1000)
    assert.ok(due >= ms(before) + 3600000 && due <= ms(after) + 3600000)
    await refuses(q.schedule('a', HOUR, 'y'), 'EEXIST')
    assert.deepEqual(await q.get('a'), { id: 'a', state: 1, ms: due, token: undefined, body: Buffer.from('x') })

    const later = await q.reschedule('a', String(due + 5))
    assert.equal(later.ms, due + 5)
    assert.equal((await q.cancel('a')).state, 1)
    await refuses(q.get('a'), 'ENOENT')
    await refuses(q.reschedule('a', HOUR), 'ENOENT')
    await refuses(q.cancel('a'), 'ENOENT')
    await refuses(q.schedule('a', '+400000000000', 'x'), 'EINVAL')
  },

  async settles () {
    const q = queue('q')
    const ends = [['done'], ['retry', 3600000, 'later'], ['fail', 'broken'], ['release'], ['renew', 60000]]
    for (const [how] of ends) await q.schedule(how, '+0', how, { tries: 3 })
    const { jobs } = await q.claim(100, 30000)
    assert.deepEqual(jobs.map(job => job.id).sort(), ends.map(([how]) => how).sort())
    const held = Object.fromEntries(jobs.map(job => [job.id, job]))

    for (const [how, ...rest] of ends) {
      const others = await dump('q')
      await refuses(q.settle(how, { ...held[how], token: String(BigInt(held[how].token) - 1n) }, ...rest), 'EGONE')
      assert.deepEqual(await dump('q'), others, `${how} by a stale token`)
      await q.settle(how, held[how], ...rest)
    }
    await refuses(q.settle('done', held.done), 'EGONE')

    await refuses(q.get('done'), 'ENOENT')
    const retried = lapse('', 'get', 'q', 'retry')
    assert.deepEqual([retried.state, retried.try, retried.reason], ['waiting', 1, 'later'])
    const failed = lapse('', 'get', 'q', 'fail')
    assert.deepEqual([failed.state, failed.reason], ['dead', 'broken'])
    assert.equal(lapse('', 'get', 'q', 'release').try, 0)
    const renewed = lapse('', 'get', 'q', 'renew')
    assert.deepEqual([renewed.state, String(renewed.token)], ['running', held.renew.token])
    assert.ok(renewed.until_ms > held.renew.ms)
  },

  async written () { // what Node has written, C reads; it would have written the same
    const n = queue('n')
    for (const [i, body] of bodies.entries()) {
      const id = `body-${i}`
      await n.schedule(id, HOUR, body)
      assert.ok(bodyOf(lapse('', 'get', 'n', id)).equals(body), id)
      lapse(body, 'schedule', 'c', '--id', id, '--in', '1h', '-')
    }
    for (const [i, [options, words]] of headers.entries()) {
      const id = `header-${i}`
      await n.schedule(id, HOUR, 'x', options)
      assert.equal(lapse('', 'get', 'n', id).tries, options.tries === 4294967295 ? 'forever' : options.tries ?? 10)
      lapse('', 'schedule', 'c', '--id', id, '--in', '1h', ...words, 'x')
    }

    const records = name => redis.hgetallBuffer(`lapse:{${name}}:jobs`)
    assert.equal(Object.keys(await records('n')).length, bodies.length + headers.length)
    assert.deepEqual(await records('n'), await records('c'))
  },

  async read () { // what C has written, Node reads
    const c = queue('c')
    const redisNow = async () => { const [s, us] = await redis.time(); return s * 1000 + us / 1000 }
    let first = Infinity
    for (const [i, body] of bodies.entries()) {
      const id = `body-${i}`
      const shown = lapse(body, 'schedule', 'c', '--id', id, '--in', '1h', '--tries', '300', '-')
      first = Math.min(first, shown.due_ms)
      const job = await c.get(id)
      assert.deepEqual([job.id, job.state, job.ms], [id, 1, shown.due_ms])
      assert.ok(job.body.equals(body), id)
      assert.ok((await redis.hgetBuffer('lapse:{c}:jobs', id)).equals(recordOf(body, { tries: 300 })), id)
    }

    lapse('unpaid', 'schedule', 'c', '--id', 'now', '--in', '0s', '--header', `trace=${'x'.repeat(200)}`, '-')
    const before = await redisNow()
    const { jobs: [job], waitMs } = await c.claim(10, 30000)
    assert.deepEqual([job.id, job.body.toString()], ['now', 'unpaid'])
    assert.ok(waitMs >= first - await redisNow() && waitMs <= Math.ceil(first - before))
    assert.equal(lapse('', 'get', 'c', 'now').state, 'running')
    assert.equal(await c.settle('done', job), 1)
  },

  async paused () {
    const q = queue('q')
    await q.schedule('a', '+0', 'x')
    lapse('', 'pause', 'q', '--for', '1h')
    const held = await q.claim(10, 30000)
    assert.deepEqual(held.jobs, [])
    assert.ok(held.waitMs > 3500000 && held.waitMs <= 3600000, String(held.waitMs))

    lapse('', 'unpause', 'q')
    const { jobs } = await q.claim(10, 30000)
    assert.deepEqual(jobs.map(job => job.id), ['a'])
    await q.settle('done', jobs[0])
  },

  async listened () { // a listener of C hears of a job of Node, and runs it
    const q = queue('q')
    const listener = spawn(process.env.LAPSE, ['listen', 'q', '--count', '1'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const lines = []
    listener.stdout.on('data', data => lines.push(data))
    const ended = once(listener, 'close')
    while ((await redis.pubsub('NUMSUB', 'lapse:{q}:notice:0'))[1] !== 1) await new Promise(resolve => setImmediate(resolve))

    await q.schedule('a', '+50', everyByte)
    assert.equal((await ended)[0], 0)
    const shown = JSON.parse(Buffer.concat(lines).toString())
    assert.equal(shown.id, 'a')
    assert.ok(bodyOf(shown).equals(everyByte))
    await refuses(q.get('a'), 'ENOENT')
  }
}

scenarios[process.argv[2]]().then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
