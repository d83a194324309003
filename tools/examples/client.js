// SPDX-License-Identifier: MIT
// Schedules and runs jobs from Node, with ioredis and the scripts of lapse: as functions, once `lapse functions --load`
// has put them into Redis, or by their hashes, if LAPSE_LUA names the folder of their texts (build/lua).
'use strict'
const { randomBytes } = require('crypto')
const { readFileSync } = require('fs')
const Redis = require('ioredis')

const varint = n => n < 128 ? [n] : [n % 128 + 128, ...varint(Math.floor(n / 128))]

function recordOf (body, { tries, backoffMs, backoffMaxMs } = {}) {
  const given = [tries, backoffMs, backoffMaxMs]
  const flags = given.reduce((sum, value, i) => sum + (value ? 2 ** i : 0), 0)
  return Buffer.concat([Buffer.from([1, flags, ...given.filter(Boolean).flatMap(varint)]), Buffer.from(body)])
}

function jobOf ([id, state, ms, attempt, record]) { // a row
  let at = 2
  const number = (n = 0, scale = 1, byte = record[at++]) =>
    byte < 128 ? n + byte * scale : number(n + (byte - 128) * scale, scale * 128)
  for (const flag of [1, 2, 4]) if (record[1] & flag) number()
  if (record[0] === 2) at = number() + at // the attributes
  return { id: id.toString(), state, ms, token: attempt.toString().split(' ')[1], body: record.subarray(at) }
}

class Queue {
  constructor (redis, name, folder) {
    Object.assign(this, { redis, folder, keys: [`lapse:{${name}}:due`, `lapse:{${name}}:none`] })
    this.holder = `node/${process.pid}/${randomBytes(8).toString('hex')}`
  }

  async run (script, ...args) {
    const call = [...this.keys, 0, ...args], name = `lapse1_${script}`
    if (!this.folder) return this.redis.callBuffer('FCALL', name, 2, ...call)
    if (!this.redis[name]) {
      this.redis.defineCommand(name, { numberOfKeys: 2, lua: readFileSync(`${this.folder}/${script}.lua`, 'utf8') })
    }
    return this.redis[`${name}Buffer`](...call)
  }

  async ask (script, ...args) { // of one job: a text in the place of its answer is a refusal
    const [, answer] = await this.run(script, ...args)
    if (Buffer.isBuffer(answer)) throw new Error(answer.toString())
    return Array.isArray(answer) ? jobOf(answer) : answer
  }

  // due is '+ms' from now by Redis's clock: never add to the clock of this machine
  schedule (id, due, body, options) { return this.ask('schedule', id, due, 0, recordOf(body, options)) }
  reschedule (id, due) { return this.ask('reschedule', id, due, 0) }
  cancel (id) { return this.ask('cancel', id, 0) }
  get (id) { return this.ask('get', id) }
  settle (how, job, ...rest) { return this.ask(how, this.holder, job.id, job.token, ...rest) }

  async claim (limit, leaseMs) {
    const reply = await this.run('claim', this.holder, leaseMs, limit) // numbers first, then rows
    const [nowUs, , nextMs, , , gateMs] = reply, untilMs = gateMs || nextMs || Infinity
    const jobs = reply.filter(row => row[1] === 2).map(jobOf) // those in other states do not run
    return { jobs, waitMs: Math.ceil(untilMs - nowUs / 1000) }
  }
}

async function main () {
  const redis = new Redis(process.env.LAPSE_URL || 'redis://127.0.0.1:6379')
  const orders = new Queue(redis, 'orders', process.env.LAPSE_LUA)
  await orders.schedule('4711', '+3600000', 'unpaid', { tries: 3 })
  await orders.schedule('4712', '+3600000', 'paid meanwhile')
  await orders.cancel('4712')
  await orders.reschedule('4711', '+100')
  console.log('waits:', (await orders.get('4711')).body.toString())

  for (let done = 0; done < 1;) {
    const { jobs, waitMs } = await orders.claim(10, 30000)
    for (const job of jobs) {
      console.log('runs:', job.id, job.body.toString())
      done += await orders.settle('done', job)
    }
    if (!done) await new Promise(resolve => setTimeout(resolve, Math.min(waitMs, 100)))
  }
  await redis.quit()
}

module.exports = { Queue, recordOf }
if (require.main === module) main()
