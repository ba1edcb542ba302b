// Random CEL as rules of CustomResourceDefinitions: what is said of a rule when it is written, and what it says of
// objects.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { resource, resourceSchema } from '#test/parity/cel/expressions.ts'
import { randomExpression } from '#test/parity/cel/generate.ts'
import { crdsPath, objectsPath, sampleCrd, sampleObject } from '#test/parity/crds/sample-crd.ts'
import type { Session } from '#test/parity/support/session.ts'
import type { Case } from './compare-cases.ts'
import { diceOf, type Dice } from './dice.ts'

const ruled = (rules: readonly JsonObject[]): JsonObject => ({
  ...resourceSchema,
  'x-kubernetes-validations': [...rules],
})

function ruleOf(dice: Dice): JsonObject {
  return {
    rule: randomExpression(dice.below),
    ...(dice.once(4) ? { messageExpression: randomExpression(dice.below) } : {}),
    ...(dice.once(6) ? { message: 'is not so' } : {}),
    ...(dice.once(8) ? { optionalOldSelf: dice.once(2) } : {}),
    ...(dice.once(8) ? { fieldPath: dice.pick(['.spec', '.spec.name', '.spec.none', '.spec.list[0]', 'spec']) } : {}),
    ...(dice.once(8) ? { reason: dice.pick(['FieldValueInvalid', 'FieldValueForbidden', 'Other']) } : {}),
  }
}

/** A definition with one random rule, as a dry run. */
export function ruleCase(seed: number): Case {
  return {
    title: `a rule of a definition, seed ${seed}`,
    run: async (session) => {
      const crd = sampleCrd({ word: `rule${seed}`, schema: ruled([ruleOf(diceOf(seed))]) })
      // The definition itself comes back with the schema that was sent.
      await session.send('POST', `${crdsPath}?dryRun=All`, { body: crd, without: ['spec', 'status', 'metadata'] })
    },
  }
}

/** A definition that is served, with those of so many random rules that a real server takes. */
export interface RuledKind {
  readonly word: string
  /** Creates it. Both servers get the same rules. */
  readonly create: (sessions: readonly [Session, Session]) => Promise<void>
}

/** Makes the definition; its rules are tried on the first session. */
export function ruledKind(word: string, seed: number, count: number): RuledKind {
  return {
    word,
    async create([real, ours]) {
      const dice = diceOf(seed)
      const taken: JsonObject[] = []
      for (let i = 0; i < count; i++) {
        const rule = ruleOf(dice)
        const crd = sampleCrd({ word, schema: ruled([...taken, rule]) })
        const { status } = await real.send('POST', `${crdsPath}?dryRun=All`, { body: crd, quiet: true })
        if (status === 201) taken.push(rule)
      }
      for (const session of [real, ours]) {
        await session.send('POST', crdsPath, { body: sampleCrd({ word, schema: ruled(taken) }), quiet: true })
        await session.untilQuiet(objectsPath(word), ({ status }) => status === 200)
      }
    },
  }
}

/** A random object of such a kind, as a dry run. */
export function ruledObjectCase(word: string, seed: number): Case {
  return {
    title: `an object of ${word}, seed ${seed}`,
    run: async (session) => {
      const dice = diceOf(seed)
      const spec = changed(dice, resource['spec'] ?? {}) as JsonObject
      const body = sampleObject(word, `o-${seed}`, { spec })
      await session.send('POST', `${objectsPath(word)}?dryRun=All`, { body, without: ['metadata'] })
    },
  }
}

const texts = ['', 'a', 'bbb', 'web', '1', '10.0.0.1', 'https://example.com/a', '1Gi', 'zzzzz'] as const

/** The value with members left out or replaced by others, mostly of the same type. */
function changed(dice: Dice, value: JsonValue): JsonValue {
  if (dice.once(60)) return null
  if (Array.isArray(value)) return value.filter(() => !dice.once(5)).map((item) => changed(dice, item))
  if (isJsonObject(value))
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, item]): [string, JsonValue][] =>
        dice.once(6) && key !== 'apiVersion' && key !== 'kind' ? [] : [[key, changed(dice, item)]],
      ),
    )
  if (!dice.once(3)) return value
  if (typeof value === 'number') return dice.pick([0, 1, -1, 3, 80, 4_294_967_296])
  if (typeof value === 'boolean') return !value
  return /^[a-zA-Zé]/.test(String(value)) ? dice.pick(texts) : value
}
