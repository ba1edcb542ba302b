// Values of the wrong JSON type, and unusual spellings of numbers, at every member of every struct of the built-in
// kinds: a real server's messages name Go types, which are in no document of its API.
import { readFileSync } from 'node:fs'
import type { ApiResponse } from '#test/parity/support/comparable-answer.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { pathOf, type Manifest } from '#test/parity/support/session.ts'

type Member = readonly [name: string, type: string, flags: string]

interface Table {
  readonly kinds: Readonly<Record<string, string>>
  readonly structs: Readonly<Record<string, readonly Member[]>>
}

const file = '../../../src/virtualapi/kinds/resources/typed/generated/go-types.json'
const table = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as Table

/** Each of these has the wrong type somewhere. */
const values: readonly string[] = [
  ...['"x"', 'true', '7', '[]', '{}', '[1]', '["x"]', '{"a":1}'],
  ...['1.0', '1e2', '-0', '2147483648', '9223372036854775808', '-1.5e-1', '1e400'],
]
const perMember = 3
const atOnce = 16

interface Question {
  readonly manifest: Manifest
  /** The document without the envelope. */
  readonly text: string
}

/** Questions about the members of a struct, and of nested structs that no earlier kind covered. */
function questionsOf(manifest: Manifest, struct: string, path: readonly string[], seen: Set<string>): Question[] {
  if (seen.has(struct)) return []
  seen.add(struct)
  const members = (table.structs[struct] ?? []).filter(([name]) => path.length > 0 || name !== 'kind')
  return [
    // Each member gets some of the values, chosen by its index.
    ...members.flatMap(([name, type], index) =>
      Array.from({ length: perMember }, (_, i) => values[(index + i * 5 + struct.length) % values.length] ?? 'null')
        // Members of type any omit 1e400: a real server closes the connection there.
        .filter((value) => value !== '1e400' || 'bils'.includes(type.charAt(0)))
        .map((value) => ({ manifest, text: around([...path, name], value) })),
    ),
    ...members.flatMap(([name, type, flags]) =>
      type.startsWith('@') ? questionsOf(manifest, type.slice(1), [...path, name, ...itemOf(flags)], seen) : [],
    ),
  ]
}

const itemOf = (flags: string): string[] => [
  ...(flags.includes('m') ? ['{}'] : []),
  ...(flags.includes('r') ? ['[]'] : []),
]

const around = (path: readonly string[], value: string): string =>
  path.reduceRight(
    (inner, step) =>
      step === '[]' ? `[${inner}]` : step === '{}' ? `{"k":${inner}}` : `{${JSON.stringify(step)}:${inner}}`,
    value,
  )

/** The complete body: of a duplicate member, the last one counts. */
function bodyOf({ manifest: { apiVersion, kind }, text }: Question): string {
  const metadata = text.startsWith('{"metadata"') ? '' : '"metadata":{"name":"a"},'
  return `{"apiVersion":"${apiVersion}","kind":"${kind}",${metadata}${text.slice(1)}`
}

function kindRow(manifest: Manifest, questions: readonly Question[]): Row {
  return row(`wrong types: ${manifest.apiVersion} ${manifest.kind}`, async (session) => {
    const path = `${pathOf(manifest, { collection: true })}?dryRun=All`
    const ask = (question: Question): Promise<ApiResponse> =>
      session.send('POST', path, { body: bodyOf(question), quiet: true })
    for (let from = 0; from < questions.length; from += atOnce) {
      const some = questions.slice(from, from + atOnce)
      const responses = await Promise.all(some.map(ask))
      for (const [index, { status, body }] of responses.entries()) {
        // Whether the body was decoded at all is compared elsewhere.
        const isDecoded = status !== 400 && status < 500
        session.note(`${manifest.kind} ${some[index]?.text ?? ''}`, isDecoded ? 'decoded' : body)
      }
    }
  })
}

const seen = new Set<string>()

export const wrongTypeRows: readonly Row[] = Object.entries(table.kinds).flatMap(([name, struct]) => {
  const slash = name.lastIndexOf('/')
  const manifest = { apiVersion: name.slice(0, slash), kind: name.slice(slash + 1), metadata: { name: 'a' } }
  const questions = isServed(manifest) ? questionsOf(manifest, struct, [], seen) : []
  return questions.length === 0 ? [] : [kindRow(manifest, questions)]
})

function isServed(manifest: Manifest): boolean {
  try {
    return pathOf(manifest) !== ''
  } catch {
    return false
  }
}
