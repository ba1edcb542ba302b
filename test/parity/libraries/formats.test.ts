// Compares the string formats of schemas with those of kube-openapi, for valid values and small changes of them.
import { expect } from 'chai'
import { formatCheck } from '#apimachinery/schema/formats.ts'
import { askGo } from '#test/clients/oracle-program.ts'
import { isLongRun } from '#test/support/index.ts'
import { diceOf, type Dice } from '#test/parity/generated/dice.ts'

const seed = Number(process.env['KCP_SEED'] ?? 1)
const perFormat = isLongRun ? 10_000 : 500

const samples: Readonly<Record<string, readonly [string, ...string[]]>> = {
  bsonobjectid: ['507f1f77bcf86cd799439011', '507F1F77BCF86CD799439011'],
  byte: ['aGVsbG8=', 'aGVsbG8h', 'YQ==', '', 'YR=='],
  cidr: [
    '10.0.0.0/8',
    'fe80::1/64',
    'fe80::1%eth0/64',
    '::/0',
    '010.0.0.0/8',
    '1.2.3.4/032',
    '::ffff:1.2.3.4/96',
    '10.0.0.1/33',
  ],
  creditcard: ['4111111111111111', '4111 1111 1111 1111', '5500-0000-0000-0004', '340000000000009'],
  date: ['2024-02-29', '2023-02-29', '0000-01-01', '2024-12-31', '2024-13-01'],
  'date-time': [
    '2024-01-02T03:04:05Z',
    '2024-01-02T03:04:05.123456789+01:00',
    '2024-01-02t03:04:05z',
    '2024-01-02T23:59:60Z',
    '2024-01-02 03:04:05Z',
  ],
  duration: ['1h30m', '5 days', '3w', '1.5s', '0', '10 min', '-1h', '2 hours 3 minutes', '1d'],
  email: [
    'a@example.com',
    'Joe <joe@example.com>',
    '"a b"@example.com',
    'a+b@c',
    'a@[1.2.3.4]',
    'joe@example.com (comment)',
    '<a@b>',
  ],
  hexcolor: ['#fff', '#FFFFFF', 'abc', '#12345'],
  hostname: [
    'example.com',
    'a',
    'a-b.c-d.org',
    'xn--d1acufc.example',
    'ä.example',
    'a_b.com',
    'a.',
    '1.2.3.4',
    'a..b',
    'localhost',
  ],
  ipv4: ['1.2.3.4', '01.2.3.4', '255.255.255.255', '256.1.1.1', '1.2.3', '::ffff:1.2.3.4'],
  ipv6: ['::1', 'fe80::1', 'fe80::1%eth0', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4', '1:2:3:4:5:6:1.2.3.4', ':::'],
  isbn: ['0-306-40615-2', '978-3-16-148410-0', '080442957X', '9783161484100'],
  isbn10: ['0-306-40615-2', '080442957X', '0 306 40615 2'],
  isbn13: ['978-3-16-148410-0', '9783161484100'],
  mac: [
    '00:00:5e:00:53:01',
    '02-00-5e-10-00-00-00-01',
    '0000.5e00.5301',
    '00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01',
  ],
  password: ['', 'x'],
  rgbcolor: ['rgb(1,2,3)', 'rgb(255, 255, 255)', 'rgb( 0 , 0 , 0 )', 'rgb(1,2)', 'RGB(1,2,3)', 'rgb(00,2,3)'],
  ssn: ['123-45-6789', '123456789', '123 45 6789'],
  uri: [
    'https://example.com/a?b=c#d',
    '/a/b',
    'mailto:a@b',
    'a',
    '//host/path',
    'http://[::1]:80/',
    'http://a b/',
    'http://a/%zz',
    '/%zz',
    'http://a:x/',
    'x:',
    'http://user:p@h/',
    '1a:b',
    '*',
    '?a',
    '/a b',
    'http://[fe80::1%25eth0]/',
  ],
  uuid: [
    '123e4567-e89b-12d3-a456-426614174000',
    '123e4567e89b12d3a456426614174000',
    '123E4567-E89B-12D3-A456-426614174000',
  ],
  uuid3: ['123e4567-e89b-32d3-a456-426614174000'],
  uuid4: ['123e4567-e89b-42d3-a456-426614174000'],
  uuid5: ['123e4567-e89b-52d3-b456-426614174000'],
  k8sshortname: ['abc', 'a-b', '-a', 'A', '1', 'a.b'],
  k8slongname: ['abc', 'a.b-c', 'a..b', 'A.b', 'a-.b'],
}
const characters = Array.from('0123456789abfxzAFZ.:-/+%@ #?[]<>()"\\,_=~é\n\t') as [string, ...string[]]

function changed(dice: Dice, text: string): string {
  const letters = Array.from(text)
  for (let i = dice.below(3); i > 0; i--) {
    const at = dice.below(letters.length + 1)
    const change = dice.below(4)
    if (change === 0) letters.splice(at, 1)
    else if (change === 1) letters.splice(at, 0, dice.pick(characters))
    else if (change === 2) letters[Math.min(at, Math.max(0, letters.length - 1))] = dice.pick(characters)
    else letters.splice(at, 0, ...letters.slice(at, at + 4))
  }
  return letters.join('')
}

/** Go takes such addresses since 1.26, with which kube-apiserver 1.34 was not built. */
function isNewer(format: string, text: string): boolean {
  return format === 'mac' && /^[0-9a-f]+$/i.test(text)
}

describe('formats are checked as Go checks them', function () {
  this.timeout(120_000)
  for (const [format, texts] of Object.entries(samples))
    it(`${format}: ${perFormat} texts`, async () => {
      const dice = diceOf(seed)
      const all = [...texts, ...Array.from({ length: perFormat }, () => changed(dice, dice.pick(texts)))]
      const responses = await askGo<boolean>(all.map((text) => ({ ask: 'format', args: [format, text] })))
      const different = all.flatMap((text, i) =>
        formatCheck(format)?.(text) === responses[i] || isNewer(format, text)
          ? []
          : [`${String(responses[i])} ${JSON.stringify(text)}`],
      )
      expect([...new Set(different)].slice(0, 30)).to.deep.equal([])
    })
})
