// One object and several managers that create, apply, update and patch it at random.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import type { Session } from '#test/parity/support/session.ts'
import type { Case } from './compare-cases.ts'
import { diceOf, type Dice } from './dice.ts'
import { randomKinds, type RandomKind } from './objects.ts'

const mostSteps = 7
const managers = ['flux', 'kubectl', 'operator'] as const

/** The story of one object. */
export function writersCase(seed: number): Case {
  const kind = diceOf(seed).pick(randomKinds)
  return {
    title: `writers of a ${kind.kind}, seed ${seed}`,
    run: async (session) => {
      const dice = diceOf(seed)
      dice.pick(randomKinds)
      const name = `made-${seed}`
      for (let step = dice.below(mostSteps) + 2; step > 0; step--) await write(session, { dice, kind, name })
      await session.get(`${kind.collection}/${name}`)
      await session.delete(`${kind.collection}/${name}`, undefined, { quiet: true })
    },
  }
}

interface Written {
  readonly dice: Dice
  readonly kind: RandomKind
  readonly name: string
}

async function write(session: Session, { dice, kind, name }: Written): Promise<void> {
  const path = `${kind.collection}/${name}`
  const dryRun = dice.once(12) ? '&dryRun=All' : ''
  const query = `?fieldManager=${dice.pick(managers)}${dryRun}`
  const made = kind.make(dice)
  const object = (): JsonObject => ({
    ...made,
    ...{ apiVersion: kind.apiVersion, kind: kind.kind },
    metadata: { ...(made['metadata'] as JsonObject), name },
  })
  switch (dice.below(8)) {
    case 0:
      await session.send('POST', kind.collection + query, { body: object() })
      return
    case 1:
    case 2:
    case 3:
      await session.patch(`${path}${query}${dice.once(3) ? '&force=true' : ''}`, object(), 'apply')
      return
    case 4:
      await session.patch(path + query, dropped(dice, made), 'merge')
      return
    case 5:
      await session.patch(path + query, dropped(dice, made), 'strategic')
      return
    case 6:
      await session.patch(path + query, operations(dice, kind, made), 'json')
      return
    default:
      await session.change(path + query, (current) => {
        const { metadata, ...rest } = made
        if (isJsonObject(current['metadata'])) Object.assign(current['metadata'], metadata)
        Object.assign(current, rest)
      })
  }
}

/** The same with some members null, so that the patch removes them. */
function dropped(dice: Dice, value: JsonObject): JsonObject {
  const entries = Object.entries(value).map(([key, item]): [string, JsonValue] => {
    if (dice.once(10)) return [key, null]
    return [key, isJsonObject(item) ? dropped(dice, item) : (item ?? null)]
  })
  return Object.fromEntries(entries)
}

function operations(dice: Dice, kind: RandomKind, made: JsonObject): JsonValue {
  return Array.from({ length: 1 + dice.below(2) }, () => {
    const path = dice.pick(kind.pointers)
    const op = dice.pick(['add', 'replace', 'remove', 'test'])
    return op === 'remove' ? { op, path } : { op, path, value: valueAtPointer(made, path) ?? dice.pick(['one', 'two']) }
  })
}

function valueAtPointer(object: JsonObject, pointer: string): JsonValue | undefined {
  return pointer
    .slice(1)
    .split('/')
    .reduce<JsonValue | undefined>(
      (inner, key) => (isJsonObject(inner) ? inner[key] : Array.isArray(inner) ? inner[Number(key)] : undefined),
      object,
    )
}
