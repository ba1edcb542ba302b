// Compares schedules and time zones of CronJobs with Go's cron and time libraries.
import { expect } from 'chai'
import { scheduleError } from '#virtualapi/kinds/rules/cron-schedule.ts'
import { isTimeZone, timeZones } from '#virtualapi/kinds/rules/time-zones.ts'
import { askGo } from '#test/clients/oracle-program.ts'
import { isLongRun } from '#test/support/index.ts'
import { diceOf, type Dice } from '#test/parity/generated/dice.ts'

const seed = Number(process.env['KCP_SEED'] ?? 1)
const count = isLongRun ? 100_000 : 4000

const parts = [
  ...[
    '*',
    '*',
    '*',
    '?',
    '0',
    '1',
    '7',
    '59',
    '60',
    '23',
    '24',
    '31',
    '32',
    '12',
    '13',
    '00',
    '007',
    '-1',
    '+1',
    '1.5',
    '',
  ],
  ...[
    '*/5',
    '*/0',
    '*/60',
    '*/-1',
    '*/x',
    '1-5',
    '5-1',
    '0-59',
    '1-5/2',
    '1/2',
    '1/',
    '/2',
    '1--2',
    '1-2-3',
    '1,2,3',
    '1,,2',
    ',',
  ],
  ...[
    'JAN',
    'jan',
    'Jan-mar',
    'DEC',
    'SUN',
    'mon-FRI',
    'sat',
    'SUNDAY',
    'L',
    'W',
    '#',
    '1W',
    'MON#1',
    '*-5',
    '?/2',
    '*,5',
    '4294967296',
  ],
] as const
const words = [
  '@hourly',
  '@daily',
  '@midnight',
  '@weekly',
  '@monthly',
  '@yearly',
  '@annually',
  '@reboot',
  '@every 1h',
  '@every 1h30m',
  '@every 5',
  '@every',
  '@every -1h',
  '@every 1.5s',
  '@every 1µs',
  '@every 1d',
  '@Hourly',
  '@',
] as const
const zones = [
  'TZ=UTC',
  'TZ=utc',
  'CRON_TZ=Europe/Berlin',
  'CRON_TZ=',
  'TZ=',
  'TZ=Nowhere',
  'tz=UTC',
  'TZ=Local',
  'TZ=../UTC',
  'TZ=america/new_york',
] as const

function randomSchedule(dice: Dice): string {
  const zone = dice.once(6) ? `${dice.pick(zones)}${dice.pick([' ', ' ', '  '])}` : ''
  if (dice.once(10)) return zone + dice.pick(words)
  const fields = Array.from({ length: dice.once(8) ? dice.below(8) : 5 }, () => dice.pick(parts))
  return zone + fields.join(dice.pick([' ', ' ', ' ', '  ', '\t']))
}

describe('CronJobs are read as Go reads them', function () {
  this.timeout(120_000)
  const dice = diceOf(seed)

  it(`schedules: ${count} texts`, async () => {
    const texts = [...words, ...Array.from({ length: count }, () => randomSchedule(dice))]
    const responses = await askGo<string | null>(texts.map((text) => ({ ask: 'cron', args: [text] })))
    for (const [i, text] of texts.entries())
      // Go crashes where nothing follows the zone.
      if (responses[i] !== 'panic')
        expect({ text, error: scheduleError(text) ?? null }).to.deep.equal({ text, error: responses[i] })
  })

  it('time zones: all names, in other cases and with other ends', async () => {
    const others = [
      'PST',
      'JST',
      'CTT',
      'IST',
      'utc',
      'Utc',
      'Local',
      'local',
      'GMT+1',
      'Etc/GMT+1',
      '+01:00',
      'UTC+1',
      'Europe',
      '',
    ]
    const names = timeZones()
    const changed = names.flatMap((name) => [
      name.toLowerCase(),
      name.toUpperCase(),
      `${name}x`,
      name.slice(0, -1),
      `${name}/`,
    ])
    const texts = [...names, ...others, ...changed].filter((text) => text !== '' && !/^local$/i.test(text))
    const responses = await askGo<string | null>(texts.map((text) => ({ ask: 'timeZone', args: [text] })))
    for (const [i, text] of texts.entries())
      expect({ text, known: isTimeZone(text) }).to.deep.equal({ text, known: responses[i] === null })
  })
})
