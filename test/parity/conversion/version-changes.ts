// Random sequences of changes of a CustomResourceDefinition (served flags, storage version, removal) and of requests in
// its versions.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import type { WebhookServer } from '#test/support/webhook-server.ts'
import { crdPath, install, objectsPath, sampleObject } from '#test/parity/crds/sample-crd.ts'
import { diceOf, type Dice } from '#test/parity/generated/dice.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { ApiResponse } from '#test/parity/support/comparable-answer.ts'
import { valueAt, type Session } from '#test/parity/support/session.ts'

type Version = 'v1alpha1' | 'v1'
const names = ['v1alpha1', 'v1'] as const
const managers = ['one', 'two'] as const

/** The definition as it is now. */
interface State {
  readonly storage: Version
  readonly served: readonly Version[]
  readonly listed: readonly Version[]
}

const text = { type: 'string' }
const spec = (more: JsonObject): JsonObject => ({
  ...{ type: 'object' },
  properties: { color: text, size: text, replicas: { type: 'integer' }, ...more },
})
const schemas: Readonly<Record<Version, JsonObject>> = {
  v1alpha1: spec({ old: text, list: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' } }),
  v1: spec({
    fresh: { ...text, default: 'yes' },
    list: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
  }),
}
const alike = spec({ list: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' } })

function versionsOf({ storage, served, listed }: State, mark: string, sameSchema: boolean): JsonValue[] {
  return listed.map((name) => ({
    ...{ name, served: served.includes(name), storage: name === storage },
    // Shows in each answer that the server has taken this change.
    ...{ deprecated: true, deprecationWarning: mark },
    schema: {
      openAPIV3Schema: {
        type: 'object',
        properties: {
          spec: sameSchema ? alike : schemas[name],
          status: { type: 'object', properties: { phase: text, replicas: { type: 'integer' } } },
        },
      },
    },
    subresources: {
      status: {},
      scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
    },
  }))
}

class Sequence {
  readonly #session: Session
  readonly #dice: Dice
  readonly #word: string
  readonly #sameSchema: boolean
  #state: State = { storage: 'v1alpha1', served: names, listed: names }
  #count = 0
  /** Objects that may exist. */
  readonly #objects = ['a', 'b', 'c'] as const

  constructor(session: Session, { dice, word, sameSchema }: { dice: Dice; word: string; sameSchema: boolean }) {
    this.#session = session
    this.#dice = dice
    this.#word = word
    this.#sameSchema = sameSchema
  }

  async install(conversion: JsonObject | undefined): Promise<void> {
    const versions = versionsOf(this.#state, 'step-0', this.#sameSchema)
    await install(this.#session, { word: this.#word, versions, ...(conversion && { spec: { conversion } }) })
    await this.#untilTaken('step-0')
    for (const name of ['a', 'b']) await this.#create(name, this.#version())
  }

  async #untilTaken(mark: string): Promise<void> {
    for (const version of names) {
      const taken = ({ status, warnings }: ApiResponse): boolean =>
        this.#state.served.includes(version)
          ? status === 200 && warnings.some((warning) => warning.includes(mark))
          : status === 404
      await this.#session.untilQuiet(objectsPath(this.#word, '', version), taken)
    }
  }

  async #define(state: State): Promise<void> {
    this.#state = state
    const mark = `step-${++this.#count}`
    const versions = versionsOf(state, mark, this.#sameSchema)
    const { status, body } = await this.#session.patch(crdPath(this.#word), { spec: { versions } }, 'merge', {
      quiet: true,
    })
    if (status !== 200) throw new Error(JSON.stringify(body))
    await this.#untilTaken(mark)
    // Both servers add the storage version there; a real one a moment later.
    const stored = ({ body }: ApiResponse): boolean => {
      const list = valueAt(body, 'status.storedVersions')
      return Array.isArray(list) && list.includes(state.storage)
    }
    await this.#session.untilQuiet(crdPath(this.#word), stored)
  }

  /** One step; all choices are made before its first request, so that both servers get the same. */
  async step(): Promise<void> {
    const kind = this.#dice.below(12)
    const version = this.#version()
    const object = this.#dice.pick(this.#objects)
    const path = objectsPath(this.#word, object, version)
    const body = this.#change()
    const manager = this.#dice.pick(managers)
    const force = this.#dice.once(2)
    if (kind < 2) await this.#define(this.#otherState())
    else if (kind === 2) await this.#retire()
    else await this.#watched(path, () => this.#write(kind, { object, version, body, manager, force }))
  }

  #write(
    kind: number,
    {
      object,
      version,
      body,
      manager,
      force,
    }: { object: string; version: Version; body: JsonObject; manager: string; force: boolean },
  ): Promise<unknown> {
    const path = objectsPath(this.#word, object, version)
    switch (kind) {
      case 3:
        return this.#create(object, version, body)
      case 4:
        return this.#session.patch(path, { metadata: { labels: { step: String(this.#count) } } })
      case 5:
        return this.#session.patch(path, body)
      case 6:
        return this.#session.patch(`${path}/status`, { status: { phase: manager } })
      case 7:
        return this.#session.patch(`${path}/scale`, { spec: { replicas: force ? 1 : 2 } })
      case 8:
        return this.#session.change(path, () => undefined)
      case 9:
        return this.#session.delete(path, undefined, { quiet: true })
      default: {
        const query = `?fieldManager=${manager}${force ? '&force=true' : ''}`
        const config = sampleObject(this.#word, object, { spec: body['spec'] ?? null }, version)
        return this.#session.patch(path + query, config, 'apply')
      }
    }
  }

  /** Runs a write and notes whether it changed what is stored. */
  async #watched(path: string, write: () => Promise<unknown>): Promise<void> {
    const revision = async (): Promise<JsonValue> =>
      valueAt((await this.#session.get(path, { quiet: true })).body, 'metadata.resourceVersion') ?? null
    const before = await revision()
    await write()
    this.#session.note(`${path} is written`, before !== (await revision()))
    await this.#session.get(path)
  }

  async #create(name: string, version: Version, body: JsonObject = this.#change()): Promise<void> {
    const object = sampleObject(this.#word, name, body, version)
    await this.#session.send('POST', objectsPath(this.#word, '', version), { body: object })
  }

  #version(): Version {
    return this.#dice.pick(this.#state.served as readonly [Version, ...Version[]])
  }

  #change(): JsonObject {
    const value = (): string => this.#dice.pick(['red', 'blue', 'green'])
    // At most one field that a version may not know: an apply is refused for any one of them.
    const other = this.#dice.pick(['old', 'fresh', undefined])
    const fields = ['color', 'size', ...(other === undefined ? [] : [other])].filter(() => this.#dice.once(2))
    return { spec: { ...Object.fromEntries(fields.map((field) => [field, value()])), list: [value()] } }
  }

  #otherState(): State {
    const { storage, served, listed } = this.#state
    if (listed.length < names.length) return { ...this.#state, listed: names, served: names }
    const next = this.#dice.below(3)
    if (next === 0) return { listed, served, storage: storage === 'v1' ? 'v1alpha1' : 'v1' }
    if (served.length === names.length) return { listed, storage, served: [this.#dice.pick(names)] }
    return { listed, storage, served: names }
  }

  /** Writes all objects again, then removes the version in which nothing is stored, as a migration does. */
  async #retire(): Promise<void> {
    const { storage, served, listed } = this.#state
    if (listed.length < names.length || !served.includes(storage)) return
    for (const object of this.#objects)
      await this.#session.change(objectsPath(this.#word, object, storage), () => undefined)
    const status = { status: { storedVersions: [storage] } }
    await this.#session.patch(`${crdPath(this.#word)}/status`, status, 'merge', { quiet: true })
    await this.#define({ storage, served: [storage], listed: [storage] })
  }

  /** All objects in all versions, by list and by watch. */
  async all(): Promise<void> {
    for (const version of this.#state.served) {
      const path = objectsPath(this.#word, '', version)
      await this.#session.get(path)
      const { body } = await this.#session.get(`${path}?watch=1&timeoutSeconds=1`, { quiet: true })
      const lines = typeof body === 'string' ? body.trim().split('\n') : [JSON.stringify(body)]
      const events = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as JsonValue)
      this.#session.note(
        `watch ${path}`,
        events.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)),
      )
    }
    await this.#session.get(crdPath(this.#word), { without: ['status.conditions', 'metadata.managedFields'] })
  }
}

function nameOf(event: JsonValue): string {
  const name = valueAt(event, 'object.metadata.name')
  return typeof name === 'string' ? name : ''
}

/** One row per seed. A webhook that only changes the apiVersion converts in every third. */
export function versionChangeRows(
  { firstSeed, count, steps }: { firstSeed: number; count: number; steps: number },
  server: () => WebhookServer,
): readonly Row[] {
  return Array.from({ length: count }, (_, i) => {
    const seed = firstSeed + i
    const kind = (['None', 'None, equal schemas', 'Webhook'] as const)[seed % 3] ?? 'None'
    return row(`versions of a definition, seed ${seed}: ${kind}`, async (session) => {
      const sequence = new Sequence(session, { dice: diceOf(seed), word: `gen${seed}`, sameSchema: kind !== 'None' })
      const webhook = { clientConfig: server().at('/convert'), conversionReviewVersions: ['v1'] }
      await sequence.install(kind === 'Webhook' ? { strategy: 'Webhook', webhook } : undefined)
      for (let step = 0; step < steps; step++) await sequence.step()
      await sequence.all()
    })
  })
}
