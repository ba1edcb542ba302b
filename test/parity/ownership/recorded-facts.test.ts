// Our ownership engine answers every recorded question as structured-merge-diff did.
import { expect } from 'chai'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { compareTyped } from '#apimachinery/managed-fields/compare-typed.ts'
import { pathText } from '#apimachinery/managed-fields/conflict-status.ts'
import { fieldsOf } from '#apimachinery/managed-fields/fields-of.ts'
import { parseFieldsV1, sortFields } from '#apimachinery/managed-fields/fields-v1.ts'
import { fitToType } from '#apimachinery/managed-fields/fit-to-type.ts'
import {
  type FieldFilter,
  type FieldSet,
  recursiveDifference,
  type OwnershipContext,
  type TypedObject,
} from '#apimachinery/managed-fields/index.ts'
import { OwnershipConflicts, type Managers } from '#apimachinery/managed-fields/managers.ts'
import { mergeTyped } from '#apimachinery/managed-fields/merge-typed.ts'
import { applyOwned, managersAfterUpdate } from '#apimachinery/managed-fields/ownership-rules.ts'
import { removeFields } from '#apimachinery/managed-fields/remove-fields.ts'
import { requireTyped } from '#apimachinery/managed-fields/validate-typed.ts'
import { recordedFacts, type Fact, type RecordedObject } from './recorded-facts.ts'
import { RecordedTypes } from './recorded-type.ts'
import { referenceSection } from '#test/support/reference-section.ts'

const seed = Number(process.env['KCP_SEED'] ?? Date.now() % 1_000_000)
const rounds = Number(process.env['KCP_ROUNDS'] ?? 300)

describe(`structured-merge-diff's answers (KCP_SEED=${seed})`, function () {
  this.timeout(25 * 60_000)
  let facts: Fact[] = []
  const counts = new Map<string, string>()

  before(async () => {
    facts = await recordedFacts({ seed, rounds })
  })

  for (const op of ['validate', 'fields', 'merge', 'compare', 'remove', 'fit', 'update', 'apply'])
    it(`are ours: ${op}`, () => {
      const replay = new Replay(facts)
      const all = facts.filter((fact) => fact.op === op)
      // Upstream itself cannot write the sets of items that lost the fields by which they are told apart.
      const asked = all.filter((fact) => !JSON.stringify(fact).includes('"invalid"'))
      const wrong = asked.flatMap((fact) => replay.differences(fact))
      console.log(
        `      ${asked.length} asked; left out: ${all.length - asked.length} that upstream cannot write, ${replay.leftOut} with conversions it was not asked for or filters that keep a few fields alone`,
      )
      const same = asked.length - replay.leftOut - wrong.length
      counts.set(op, `| ${op} | ${all.length} | ${same} | ${all.length - asked.length} | ${replay.leftOut} |`)
      expect(asked).to.not.have.length(0)
      expect(wrong, `${wrong.length} of ${asked.length}: ${JSON.stringify(wrong[0], undefined, 1)}`).to.have.length(0)
    })

  it('are counted in docs/reference (KCP_UPDATE_REFERENCE=1 writes it)', () => {
    const names = (lines: readonly string[]): string[] => lines.slice(5).map((line) => line.split('|')[1] ?? '')
    const lines = countedLines(counts)
    // The numbers are those of another seed.
    expect(names(referenceSection('upstream-suites.md', 'structured-merge-diff', lines))).to.deep.equal(names(lines))
  })
})

function countedLines(counts: ReadonlyMap<string, string>): string[] {
  return [
    '',
    `Seed ${seed}, ${rounds} rounds of random objects:`,
    '',
    '| question | recorded | answered the same | not written by upstream | not asked here |',
    '| --- | --- | --- | --- | --- |',
    ...counts.values(),
    '',
  ]
}

interface Conversion {
  readonly from: RecordedObject
  readonly apiVersion: string
  readonly error: string | null
  readonly to?: RecordedObject
  readonly missing?: boolean
}

type RecordedManagers = Readonly<
  Record<string, { readonly fields: FieldSet; readonly apiVersion: string; readonly applied: boolean }>
>

interface RecordedFilter {
  readonly kind: 'exclude' | 'include' | 'other'
  readonly exclude: FieldSet | null
}

/**
 * What cannot be asked: go walks managers in any order, so upstream may never have told of a conversion that we want.
 */
class NotOurs extends Error {}

function conversionsOf(fact: Fact): readonly Conversion[] {
  return (fact['conversions'] ?? []) as unknown as readonly Conversion[]
}

/** Of a write: the schema of its objects. */
function schemaOf(fact: Fact): RecordedObject['schema'] {
  return (fact['live'] as unknown as RecordedObject).schema
}

function schemaKey({ process, id }: RecordedObject['schema']): string {
  return `${process}/${id}`
}

function conversionKey(schema: RecordedObject['schema'], apiVersion: string, value: JsonValue): string {
  return `${schemaKey(schema)} ${apiVersion} ${sorted(value)}`
}

const keyOf = ({ from, apiVersion }: Conversion): string => conversionKey(from.schema, apiVersion, from.value)

class Replay {
  leftOut = 0
  readonly #schemas = new Map<string, RecordedTypes>()
  readonly #conversions = new Map<string, Conversion>()

  constructor(facts: readonly Fact[]) {
    for (const fact of facts) {
      if (fact.op === 'schema')
        this.#schemas.set(
          schemaKey(fact as unknown as RecordedObject['schema']),
          new RecordedTypes(fact['types'] as unknown as ConstructorParameters<typeof RecordedTypes>[0]),
        )
      for (const conversion of conversionsOf(fact)) this.#conversions.set(keyOf(conversion), conversion)
    }
  }

  /** Empty where our answer is the recorded one. */
  differences(fact: Fact): unknown[] {
    const ours = this.#answer(fact)
    if (ours === undefined) {
      this.leftOut++
      return []
    }
    const theirs = recordedResponse(fact)
    // Upstream stops at the first field that is not declared, and walks maps in any order.
    if (stopsEarly(ours) && stopsEarly(theirs)) return []
    try {
      expect(ours).to.deep.equal(theirs)
      return []
    } catch {
      return [{ fact: JSON.stringify(fact), ours: JSON.stringify(ours), theirs: JSON.stringify(theirs) }]
    }
  }

  #answer(fact: Fact): unknown {
    const run = (work: () => unknown): unknown => {
      try {
        return work()
      } catch (error) {
        if (error instanceof OwnershipConflicts)
          return {
            conflicts: error.conflicts.map(({ manager, path }) => `${manager} ${pathText(path)}`).sort(),
          }
        if (isNotOurs(error)) return undefined
        return { error: textOf((error as Error).message) }
      }
    }
    if (fact.op === 'update' || fact.op === 'apply') return run(() => this.#write(fact))
    const { value, type } = this.#typed(fact)
    return run(() => this.#asked(fact, value, type))
  }

  #asked(fact: Fact, value: JsonValue, type: ReturnType<RecordedTypes['typeOf']>): unknown {
    const other = fact['other'] as JsonValue
    const fields = (): FieldSet => parseFieldsV1(fact['fields'])
    switch (fact.op) {
      case 'validate':
        requireTyped(value, type, { allowDuplicates: fact['allowDuplicates'] === true })
        return { result: null }
      case 'fields':
        return { result: encoded(fieldsOf(value, type)) }
      case 'merge':
        return { result: mergeTyped(value, other, type) }
      case 'compare': {
        const { removed, modified, added } = compareTyped(value, other, type)
        return { removed: encoded(removed), modified: encoded(modified), added: encoded(added) }
      }
      case 'remove':
        return { result: removeFields(value, fields(), type) }
      default: {
        const before = fields()
        const after = fitToType(before, type)
        return { result: after === before ? encoded(before) : encoded(after) }
      }
    }
  }

  #write(fact: Fact): unknown {
    const object = (name: string): TypedObject => this.#typed(fact[name] as unknown as RecordedObject)
    const state = {
      live: object('live'),
      apiVersion: fact['apiVersion'] as string,
      managers: managersOf(fact['managers'] as unknown as RecordedManagers),
      manager: fact['manager'] as string,
    }
    const context = this.#context(fact)
    if (fact.op === 'update') return { managers: encodedManagers(managersAfterUpdate(state, object('next'), context)) }
    const { object: result, managers } = applyOwned(state, object('next'), context, { force: fact['force'] === true })
    return { object: result ?? null, managers: encodedManagers(managers) }
  }

  #context(fact: Fact): OwnershipContext {
    const filters = (fact['filters'] ?? {}) as unknown as Readonly<Record<string, RecordedFilter>>
    const isIdentity = conversionsOf(fact).every(({ from, to }) => to === undefined || sameJson(from, to))
    return {
      convert: (typed, apiVersion) => {
        const key = conversionKey(schemaOf(fact), apiVersion, typed.value)
        const own = conversionsOf(fact).find((one) => keyOf(one) === key)
        // Of another fact with the same schema, unless nothing is converted here at all.
        const known = own ?? (isIdentity ? undefined : this.#conversions.get(key))
        if (known?.missing === true) return undefined
        if (known?.error) throw new Error(known.error)
        if (known?.to !== undefined) return this.#typed(known.to)
        const ofVersion = conversionsOf(fact).find((conversion) => conversion.apiVersion === apiVersion)
        if (isIdentity && ofVersion?.missing === true) return undefined
        if (isIdentity) return typed
        throw new NotOurs(`to ${apiVersion} of ${JSON.stringify(typed.value)}`)
      },
      filterFor: (apiVersion) => (filters[apiVersion] === undefined ? undefined : filterOf(filters[apiVersion])),
    }
  }

  #typed({ schema, type, value }: RecordedObject): TypedObject {
    const types = this.#schemas.get(schemaKey(schema))
    return { value, type: types?.typeOf(type) ?? {} }
  }
}

/** The error of a conversion tells what was being done with it. */
function isNotOurs(error: unknown): boolean {
  return error instanceof NotOurs || (error instanceof Error && isNotOurs(error.cause))
}

function recordedResponse(fact: Fact): unknown {
  if (fact['conflicts'])
    return { conflicts: (fact['conflicts'] as unknown as [string, string][]).map((pair) => pair.join(' ')).sort() }
  if (fact['error']) return { error: textOf(fact['error'] as string) }
  switch (fact.op) {
    case 'compare':
      return {
        removed: JSON.stringify(fact['removed']),
        modified: JSON.stringify(fact['modified']),
        added: JSON.stringify(fact['added']),
      }
    case 'fields':
      return { result: JSON.stringify(fact['result']) }
    case 'fit':
      return { result: JSON.stringify(fact['result'] ?? fact['fields']) }
    case 'update':
      return { managers: recordedManagers(fact) }
    case 'apply':
      return { object: fact['result'] ?? null, managers: recordedManagers(fact) }
    default:
      return { result: fact['result'] ?? null }
  }
}

function recordedManagers(fact: Fact): unknown {
  return Object.fromEntries(
    Object.entries(fact['managersAfter'] as unknown as RecordedManagers).map(([name, owned]) => [
      name,
      { ...owned, fields: JSON.stringify(owned.fields) },
    ]),
  )
}

function encodedManagers(managers: Managers): unknown {
  return Object.fromEntries([...managers].map(([name, owned]) => [name, { ...owned, fields: encoded(owned.fields) }]))
}

function managersOf(managers: RecordedManagers): Managers {
  return new Map(
    Object.entries(managers).map(([name, owned]) => [name, { ...owned, fields: parseFieldsV1(owned.fields) }]),
  )
}

const encoded = (set: FieldSet): string => JSON.stringify(sortFields(set))

/** Filters that keep a few fields alone are asked by no endpoint of a real server, so we have none. */
function filterOf({ kind, exclude }: RecordedFilter): FieldFilter {
  if (kind !== 'exclude') throw new NotOurs(`a filter of kind ${kind}`)
  const reset = parseFieldsV1(exclude)
  return (set) => recursiveDifference(set, reset)
}

function stopsEarly(response: unknown): boolean {
  return String((response as { error?: string }).error).includes('field not declared in schema')
}

/**
 * The text of an error as it can be compared. Go walks maps in any order and stops at the first field that is not
 * declared; upstream's tests read YAML, whose maps are of another Go type; and a schema that is wrong we cannot make.
 */
function textOf(error: string): string {
  return error
    .replaceAll('map[interface {}]interface {}', 'map[string]interface {}')
    .replace(/\.\w+: field not declared in schema/, 'field not declared in schema')
    .replace(/schema error: .*/, 'schema error')
    .split('\n')
    .sort()
    .join('\n')
}

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function sorted(value: JsonValue): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}
