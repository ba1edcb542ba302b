// Removes server-specific values from answers: uids, revisions, times, certificates, generated names. There is one
// Normaliser per server and topic: it remembers earlier values, so that "the same revision as before" is compared.
import { gunzipSync } from 'node:zlib'
import { parse as parseYaml } from 'yaml'
import { isRecord } from '#test/integration/json.ts'
import { chosenWay } from '#test/parity/support/our-server.ts'
import type { ApiResponse } from './wire.ts'

/** Headers compared if either server sends them. */
const comparedHeaders = [
  'allow',
  'audit-id',
  'cache-control',
  'content-encoding',
  'content-type',
  'etag',
  'location',
  'retry-after',
  'vary',
  'warning',
  'x-content-type-options',
]
const uuid = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g
const time = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b/g

/** Bookmarks may come at any time, except the one that ends the initial events. */
function isIdle(event: unknown): boolean {
  return isRecord(event) && event['type'] === 'BOOKMARK' && !JSON.stringify(event).includes('initial-events-end')
}

/** An answer that can be compared with another server's by deep equality. */
export interface Comparable {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  readonly events?: readonly unknown[]
}

/** The host's kube-apiserver writes its own headers of an answer, and then those of the aggregated server. */
const isAggregated = chosenWay() === 'aggregator'

export class Normaliser {
  /** Objects by uid: their label in comparisons, and their revisions in the order of appearance. */
  private readonly objects = new Map<string, { label: string; revisions: string[] }>()
  private readonly incarnations = new Map<string, number>()
  /** Revision -> the label of its object. */
  private readonly revisions = new Map<string, string>()
  private readonly generated = new Map<string, string>()
  private readonly base: string

  /** @param base path under which this server serves the cluster */
  constructor(base: string) {
    this.base = base
  }

  answer({ status, headers, body }: ApiResponse, events?: readonly string[]): Comparable {
    const type = headers.get('content-type')?.[0] ?? ''
    const compared: Record<string, string> = {}
    for (const name of comparedHeaders) {
      const values = headers.get(name)
      if (values !== undefined) compared[name] = this.header(name, isAggregated ? [...new Set(values)] : values)
    }
    const plain = headers.get('content-encoding')?.[0] === 'gzip' ? gunzipSync(body) : body
    return {
      status,
      headers: compared,
      body: this.body(plain, type),
      ...(events === undefined
        ? {}
        : { events: events.map((text) => this.text(text)).filter((event) => !isIdle(event)) }),
    }
  }

  private header(name: string, values: readonly string[]): string {
    if (name === 'etag' || name === 'audit-id') return 'SOME'
    // Warnings in one header or in several are equivalent.
    if (name === 'warning') return values.flatMap((value) => value.split(/, (?=299 )/)).join('\n')
    if (name === 'vary')
      return values
        .flatMap((value) => value.split(', '))
        .sort()
        .join(', ')
    return this.scalar(values.join('\n'))
  }

  private body(bytes: Buffer, type: string): unknown {
    if (bytes.length === 0) return ''
    const text = bytes.toString()
    if (type.startsWith('application/yaml')) return { yaml: this.value(parseYaml(text) as unknown) }
    if (type.startsWith('application/vnd.kubernetes.protobuf')) return 'PROTOBUF'
    return this.text(text)
  }

  private text(text: string): unknown {
    try {
      return this.value(JSON.parse(text) as unknown)
    } catch {
      return this.scalar(text)
    }
  }

  private value(value: unknown): unknown {
    this.learn(value)
    return this.shown(value, '')
  }

  /** Records every object in the document. */
  private learn(value: unknown): void {
    if (Array.isArray(value)) value.forEach((item) => this.learn(item))
    if (!isRecord(value)) return
    const { metadata } = value
    if (isRecord(metadata) && typeof metadata['uid'] === 'string') this.learnObject(metadata)
    Object.values(value).forEach((item) => this.learn(item))
  }

  private learnObject(metadata: Record<string, unknown>): void {
    const { uid, generateName, name, namespace = '', resourceVersion } = metadata as Record<string, string>
    if (uid === undefined || name === undefined) return
    if (generateName !== undefined && name.startsWith(generateName) && name !== generateName)
      this.generated.set(name, `${generateName}GENERATED`)
    let object = this.objects.get(uid)
    if (object === undefined) {
      const what = this.scalar(`${namespace}/${name}`)
      const incarnation = (this.incarnations.get(what) ?? 0) + 1
      this.incarnations.set(what, incarnation)
      this.objects.set(uid, (object = { label: `${what}#${incarnation}`, revisions: [] }))
    }
    if (typeof resourceVersion === 'string' && !object.revisions.includes(resourceVersion)) {
      object.revisions.push(resourceVersion)
      this.revisions.set(resourceVersion, `revision ${object.revisions.length} of ${object.label}`)
    }
  }

  private shown(value: unknown, key: string): unknown {
    if (Array.isArray(value)) {
      const items = value.map((item) => this.shown(item, ''))
      // Their order is that of a Go map.
      if (key === 'resourceRules' || key === 'nonResourceRules')
        return items.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
      // Upstream validates some kinds several times.
      return key === 'causes' ? [...new Map(items.map((item) => [JSON.stringify(item), item])).values()] : items
    }
    if (isRecord(value)) {
      // The revision of a list or a bookmark depends on the server.
      const ownRevision = key === 'metadata' && typeof value['uid'] !== 'string' && value['resourceVersion']
      return Object.fromEntries(
        Object.entries(ownRevision ? { ...value, resourceVersion: 'some revision' } : value)
          .filter(([member]) => member !== 'managedFields')
          .map(([member, item]) => [this.scalar(member), this.shown(item, member)]),
      )
    }
    if (typeof value !== 'string') return value
    if (key === 'resourceVersion') return this.revisions.get(value) ?? (value === '' ? '' : 'some revision')
    if (key === 'continue') return value === '' ? '' : 'some token'
    if (key === 'serverAddress') return 'some address'
    if (value.includes('-----BEGIN CERTIFICATE-----')) return 'some certificate'
    // Descriptions are each server's own text.
    if (key === 'kubernetes.io/description' || key === 'description') return 'some description'
    return this.scalar(value)
  }

  /** Normalises any text: messages, names, paths. */
  private scalar(given: string): string {
    let text = this.base === '' ? given : given.replaceAll(this.base, '')
    // Our server reads protobuf but answers in JSON, so its list of media types is shorter.
    text = text.replace(/, application\/vnd\.kubernetes\.protobuf(;stream=watch)?/g, '')
    for (const [name, label] of this.generated) text = text.replaceAll(name, label)
    text = text.replace(uuid, (found) => {
      const object = this.objects.get(found)
      return object === undefined ? 'some uid' : `uid of ${object.label}`
    })
    text = text.replace(/\bhash=[0-9A-F]{128}\b/g, 'hash=SOME')
    text = text.replace(time, 'some time').replace(/kube-api-access-[a-z0-9]{5}/g, 'kube-api-access-GENERATED')
    // A failed patch prints the whole document, in an order of its own.
    text = text.replace(/Invalid value: "(\{|map\[).*": /s, 'Invalid value: the patched document: ')
    text = text.replace(/ in scheme "[^"]*"/, '')
    text = text
      .replace(/\bGen_[a-z0-9]{5}\b/g, 'Gen_GENERATED')
      .replace(/\b(gen[.]|g{58})[a-z0-9]{5}\b/g, '$1GENERATED')
    // Revisions in messages.
    text = text.replace(
      /((?:version|current|precondition|meta|too old): |in record \()(\d+)/gi,
      (_, before: string, found: string) => `${before}${this.revisions.get(found) ?? 'some revision'}`,
    )
    // The current revision depends on the server.
    text = text.replace(/(Too large resource version: .*, current: )(.+)$/, '$1some revision')
    return text.replace(/^\d+(s|m|m\d+s)$/, 'some age')
  }
}
