// SPDX-License-Identifier: MIT
// Prints tests/cron/croner.txt, the rows that npm's croner works out. The tests do not need it, nor Node:
//
//     npm --prefix build/croner install croner@11.0.1
//     cp tests/cron/make_croner.mjs build/croner/ && node build/croner/make_croner.mjs > tests/cron/croner.txt
//
// Only rows where its rule is ours: away from shifts any line; at shifts a line with one hour and one minute, or with hour *.
// The day of month and that of the week are not both given, or neither of them with a step behind *.
import { Cron } from 'croner';

const away = [
    '* * * * *', '*/5 * * * *', '7-59/13 * * * *', '0,15,30,45 * * * *', '0 * * * *', '59 23 * * *',
    '0 9 * * 1-5', '0 9 * * mon-fri', '30 9,17 * * *', '*/20 8-18/2 * * *', '0 */6 * * *', '5 4 * * 0', '5 4 * * 7', '0 0 * * sun',
    '0 12 1 * *', '0 12 1,15 * *', '0 0 31 * *', '30 6 29-31 * *', '0 0 1 jan *', '0 0 1 1,4,7,10 *', '15 10 * jun-aug sat,sun',
    '0 0 13 * 5', '0 0 13 * fri', '0 8 1-7 * 1', '0 0 1 */3 *', '45 23 31 12 *', '0 0 29 2 *', '10 10 10 10 *', '0 0 * feb 1',
    '22 2 2 2 2', '1-3,57-59 0,23 * * *', '0 5 */10 * *', '0 0 * * 5-7', '0 0 * * 1,3,5', '0 18 * 11 thu', '0 7 30 4,6,9,11 *',
];
const awayFrom = [
    ['UTC', '2026-01-01T00:00:00Z'], ['Asia/Tokyo', '2026-02-27T22:10:30Z'], ['Asia/Kolkata', '2027-12-30T12:00:00Z'],
    ['Asia/Kathmandu', '2040-02-27T23:59:59Z'],
];

// each zone with moments before its shifts, and hours and minutes around them
const shifts = [
    ['Europe/Berlin', ['2026-03-27T20:00:00Z', '2026-10-23T20:00:00Z', '2040-03-23T20:00:00Z', '2040-10-26T20:00:00Z'],
        ['30 2 * * *', '0 2 * * *', '59 1 * * *', '0 3 * * *', '15 * * * *']],
    ['America/New_York', ['2026-03-06T20:00:00Z', '2026-10-30T20:00:00Z'],
        ['30 2 * * *', '0 2 * * *', '30 1 * * *', '0 3 * * *', '0 * * * *']],
    ['America/Santiago', ['2026-04-03T20:00:00Z', '2026-09-04T20:00:00Z'], ['30 23 * * *', '0 0 * * *', '45 0 * * *', '40 * * * *']],
    ['Pacific/Chatham', ['2026-04-03T02:00:00Z', '2026-09-25T02:00:00Z'], ['0 3 * * *', '50 2 * * *', '10 3 * * *', '5 * * * *']],
    ['Europe/London', ['2026-03-28T02:00:00Z', '2026-10-24T02:00:00Z'], ['30 1 * * *', '0 1 * * *', '0 2 * * *', '30 * * * *']],
    ['Australia/Sydney', ['2026-04-03T02:00:00Z', '2026-10-02T02:00:00Z'], ['30 2 * * *', '0 2 * * *', '0 3 * * *', '20 * * * *']],
];

function local(date, zone) {
    const parts = Object.fromEntries(new Intl.DateTimeFormat('en-GB', {
        timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit',
        hour: '2-digit', minute: '2-digit', second: '2-digit',
    }).formatToParts(date).map((p) => [p.type, p.value]));
    const clock = `${parts.year}-${parts.month}-${parts.day}T${parts.hour}:${parts.minute}:${parts.second}`;
    const offset = Math.round((Date.parse(clock + 'Z') - date) / 60000);
    const two = (n) => String(n).padStart(2, '0');
    return { offset, text: clock + (offset < 0 ? '-' : '+') + two(Math.floor(Math.abs(offset) / 60)) + ':' + two(Math.abs(offset) % 60) };
}

function row(line, zone, from) {
    const runs = new Cron(line, { timezone: zone }).nextRuns(5, from);
    return [line, zone, local(from, zone).text, runs.map((d) => local(d, zone).text).join(' ')].join(' | ');
}

// the hour at which the offset of the zone is another one than at this moment
function shiftAfter(zone, from) {
    let at = from.getTime();
    while (local(new Date(at), zone).offset === local(from, zone).offset) {
        at += 3600000;
    }
    return at;
}

console.log('# line | zone | after | the next five moments; printed by make_croner.mjs with croner 11.0.1');
for (const line of away) {
    for (const [zone, from] of awayFrom) {
        console.log(row(line, zone, new Date(from)));
    }
}
for (const [zone, froms, lines] of shifts) {
    for (const from of froms) {
        for (const line of lines) {
            const hourly = line.split(' ')[1] === '*';
            const begin = hourly ? new Date(shiftAfter(zone, new Date(from)) - 3 * 3600000) : new Date(from);
            console.log(row(line, zone, begin));
        }
    }
}
