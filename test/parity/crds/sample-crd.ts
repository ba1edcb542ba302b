// CustomResourceDefinitions for the tables of tests: one version with one schema, modified by a row of the table.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { valueAt, type Session } from '#test/parity/support/session.ts'

export const crdsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

export interface SampleCrd {
  /** Singular in lower case; the plural appends an s, the group is `WORD.$ID.example.com`. */
  readonly word: string
  readonly schema?: JsonObject
  /** Merged into the one version. */
  readonly version?: JsonObject
  /** Replaces the one version. */
  readonly versions?: readonly JsonValue[]
  /** Merged into the names. */
  readonly names?: JsonObject
  /** Merged into the spec. */
  readonly spec?: JsonObject
  readonly metadata?: JsonObject
}

const anything: JsonObject = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

export const groupOf = (word: string): string => `${word}.$ID.example.com`
export const nameOf = (word: string): string => `${word}s.${groupOf(word)}`
export const crdPath = (word: string): string => `${crdsPath}/${nameOf(word)}`
/** The path of the objects of a namespaced sample. */
export const objectsPath = (word: string, name = '', version = 'v1'): string =>
  `/apis/${groupOf(word)}/${version}/namespaces/$NS/${word}s${name === '' ? '' : `/${name}`}`
/** An object of a sample. */
export const sampleObject = (word: string, name: string, rest: JsonObject = {}, version = 'v1'): JsonObject => ({
  apiVersion: `${groupOf(word)}/${version}`,
  kind: kindOf(word),
  metadata: { name },
  ...rest,
})
export const kindOf = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

export function sampleCrd({
  word,
  schema = anything,
  version,
  versions,
  names,
  spec,
  metadata,
}: SampleCrd): JsonObject {
  const only = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, ...version }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: nameOf(word), ...metadata },
    spec: {
      group: groupOf(word),
      scope: 'Namespaced',
      names: { plural: `${word}s`, singular: word, kind: kindOf(word), listKind: `${kindOf(word)}List`, ...names },
      versions: versions === undefined ? [only] : [...versions],
      ...spec,
    },
  }
}

/** Creates it without recording and resolves once its objects are served. */
export async function install(session: Session, sample: SampleCrd): Promise<void> {
  const { status, body } = await session.send('POST', crdsPath, { body: sampleCrd(sample), quiet: true })
  if (status !== 201) throw new Error(`${sample.word}: ${JSON.stringify(body)}`)
  // The resource may be served before the status reports it: a change of the definition in between would conflict.
  await session.untilQuiet(crdPath(sample.word), isEstablished)
  await served(session, objectsPath(sample.word, '', firstVersion(body)))
}

function isEstablished({ body }: { body: JsonValue }): boolean {
  const conditions = valueAt(body, 'status.conditions')
  return (
    Array.isArray(conditions) &&
    conditions.some((one) => valueAt(one, 'type') === 'Established' && valueAt(one, 'status') === 'True')
  )
}

/** Resolves once this collection is served. */
export async function served(session: Session, path: string): Promise<void> {
  await session.untilQuiet(path, ({ status }) => status === 200)
}

function firstVersion(crd: JsonValue): string {
  const name = valueAt(crd, 'spec.versions.0.name')
  return typeof name === 'string' ? name : ''
}
