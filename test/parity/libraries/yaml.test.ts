// Compares YAML bodies with sigs.k8s.io/yaml, which kube-apiserver reads them with.
import { expect } from 'chai'
import { isDeepStrictEqual } from 'node:util'
import { parseYamlBody } from '#virtualapi/codec/yaml.ts'
import { askGo } from '#test/clients/oracle-program.ts'
import { isLongRun } from '#test/support/index.ts'
import { diceOf, type Dice } from '#test/parity/generated/dice.ts'

const seed = Number(process.env['KCP_SEED'] ?? 1)
const count = isLongRun ? 100_000 : 4000

const scalars = [
  ...[
    'yes',
    'Yes',
    'YES',
    'yEs',
    'no',
    'on',
    'off',
    'On',
    'oFF',
    'y',
    'n',
    'Y',
    'true',
    'True',
    'TRUE',
    'tRue',
    'false',
  ],
  ...[
    'null',
    'Null',
    'NULL',
    '~',
    '',
    'nil',
    'none',
    '0',
    '-0',
    '+0',
    '00',
    '007',
    '0o644',
    '0O17',
    '-0o17',
    '+0o17',
    '0o8',
  ],
  ...[
    '0777',
    '-0777',
    '0778',
    '08',
    '0x1F',
    '0X1f',
    '-0x10',
    '0xG',
    '0b101',
    '-0b11',
    '0b2',
    '1_000',
    '_1',
    '1_',
    '1__0',
    '0x_f',
  ],
  ...[
    '190:20:30',
    '1:60',
    '-1:30',
    '1:30.5',
    '1.5',
    '1.',
    '.5',
    '-.5',
    '+1.5',
    '1e3',
    '1E3',
    '1e+3',
    '1.5e-3',
    'e3',
    '1e',
    '.e1',
  ],
  ...[
    '.inf',
    '-.inf',
    '.Inf',
    '.NaN',
    '.nan',
    '+.inf',
    'inf',
    'NaN',
    '1_0.5_0',
    '6.02e23',
    '1e400',
    '-1e-400',
    '123456789012',
  ],
  ...[
    '2001-01-01',
    '2001-12-14t21:59:43.10-05:00',
    '2001-12-14 21:59:43.10 -5',
    '2001-1-1',
    '12:30',
    '12:30:45',
    '=',
    '<<',
  ],
  ...[
    '0.1',
    '1.10',
    '100.0',
    '-12',
    '+12',
    '1-2',
    '12e03',
    '0e0',
    '0.0',
    '-0.0',
    '1,000',
    '!',
    '@a',
    '%a',
    '-',
    '- a',
    '?',
    ':a',
    'a:b',
  ],
  ...[
    '"yes"',
    "'012'",
    '"\\u0041\\n"',
    "'it''s'",
    '"\\x41\\e"',
    '!!str 012',
    '!!int "012"',
    '!!float 1',
    '!!bool yes',
    '!!null x',
  ],
  ...[
    '!!binary aGVsbG8=',
    '!!timestamp 2001-01-01',
    '!local x',
    '!!str',
    '!!int x',
    '__proto__',
    'constructor',
    'a #b',
    'a#b',
  ],
  ...[
    '[1, yes, 0o7]',
    '{a: 1, b: no}',
    '{yes: 1, 1: 2, 1.5: 3, null: 4, ~: 5}',
    '[]',
    '{}',
    '[a, , b]',
    '{a, b: c}',
    '{? a : b}',
  ],
] as const

const keys = [
  'a',
  'b',
  'yes',
  'no',
  '1',
  '0o7',
  '1.5',
  'null',
  '~',
  '"q"',
  '012',
  '.inf',
  '2001-01-01',
  '__proto__',
  '-1',
  '1e3',
] as const

const documents = [
  'a: &x 1\nb: *x\n',
  'a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  k: 3\n',
  'a: &x {k: 1}\nb: &y {k: 2, m: 3}\nc:\n  <<: [*x, *y]\n  n: 1\n',
  'b:\n  <<: {k: 1}\n  k: 2\n',
  'b:\n  k: 2\n  <<: {k: 1}\n',
  'b:\n  <<: 1\n',
  'a: 1\na: 2\n',
  'a: 1\n"a": 2\n',
  'yes: a\ntrue: b\n',
  'a: |\n  text\n   more\n\nb: >\n  fold\n  ed\n\n  par\n',
  'a: |-\n  x\nb: |+\n  y\n\n',
  'a: |2\n   x\n',
  '- a\n- b: c\n- - d\n',
  '--- \na: 1\n',
  '---\na: 1\n---\nb: 2\n',
  'a: 1\n...\nb: 2\n',
  '%YAML 1.1\n---\na: 0o7\n',
  '%YAML 1.2\n---\na: 0o7\nb: yes\n',
  '%TAG ! tag:example.com,2000:\n---\na: !x 1\n',
  '# only a comment\n',
  '',
  '\n',
  'null\n',
  'text\n',
  '[1, 2]\n',
  '\ufeffa: 1\n',
  'a:\n\tb: 1\n',
  'a: "x\n  y"\n',
  "a: 'x\n\n  y'\n",
  'a: x\n  y\n',
  '? a\n: b\n',
  '? [a, b]\n: c\n',
  '{a: {b: [1, {c: d}]}}\n',
  'a: *unknown\n',
  'a: [1, 2\n',
  'a: {b\n',
  'a: b: c\n',
  'a: "\\q"\n',
  "a: '\n",
  '&a a: b\nc: *a\n',
  'a: &x\n  - *x\n',
  'a: !!set {x, y}\n',
  'a: !!omap [x: 1]\n',
  'a: !!pairs [x: 1]\n',
]

function randomDocument(dice: Dice): string {
  // Each key once: a value that JSON does not have is no error in Go if a later one replaces it.
  const chosen = new Set(Array.from({ length: 1 + dice.below(4) }, () => dice.pick(keys)))
  const lines = [...chosen].map((key) => {
    const value = dice.pick(scalars)
    switch (dice.below(5)) {
      case 0:
        return `${key}:\n  - ${value}\n  - ${dice.pick(scalars)}`
      case 1:
        return `${key}:\n  ${dice.pick(keys)}: ${value}`
      case 2:
        return `${key}: [${dice.pick(['1', 'yes', '0o17', '"x"', '1_0', '~'])}, ${dice.pick(['012', '1:30', '.5', 'no'])}]`
      default:
        return `${key}: ${value}`
    }
  })
  return `${lines.join('\n')}\n`
}

interface ApiResponse {
  readonly json?: string
  readonly error?: string
}

function ours(text: string): { readonly value?: unknown; readonly error?: string } {
  try {
    return { value: parseYamlBody(Buffer.from(text)).value }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

describe('YAML bodies equal those of Go', function () {
  this.timeout(isLongRun ? 600_000 : 120_000)
  const dice = diceOf(seed)
  // Collections as keys end the document in Go, or not, depending on their last token.
  const single = scalars.flatMap((scalar) => [
    ...[`a: ${scalar}\n`, `- ${scalar}\n`],
    ...(/^[[{]/.test(scalar) ? [] : [`${scalar}: a\n`]),
  ])
  const texts = [...documents, ...single, ...Array.from({ length: count }, () => randomDocument(dice))]

  it(`reads ${texts.length} documents`, async () => {
    const responses = await askGo<ApiResponse>(texts.map((text) => ({ ask: 'yaml', args: [text] })))
    const different = texts.flatMap((text, i) => {
      const { json, error } = responses[i] ?? {}
      const mine = ours(text)
      const isEqual =
        json === undefined
          ? mine.error !== undefined
          : mine.error === undefined && isDeepStrictEqual(mine.value, JSON.parse(json))
      return isEqual ? [] : [{ text, go: json ?? error, ours: mine.error ?? JSON.stringify(mine.value) }]
    })
    expect(different).to.deep.equal([])
  })
})
