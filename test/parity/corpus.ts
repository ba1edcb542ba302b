// Realistic manifests, and the answers of a real kube-apiserver 1.34.3.
import { readFileSync, writeFileSync } from 'node:fs'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { Status } from '#apimachinery/status/index.ts'

export interface Case {
  readonly title: string
  readonly object: KubeObject
  /** The stored object that `object` replaces; absent: it is created. */
  readonly old?: KubeObject
  /** The stored object, without server-specific values. */
  answer?: KubeObject
  /** The error, if the request was refused. */
  status?: Status
}

/** Reads the corpus `valid` or `invalid`. */
export function readCorpus(name: string): Case[] {
  return JSON.parse(readFileSync(fileOf(name), 'utf8')) as Case[]
}

export function writeCorpus(name: string, cases: readonly Case[]): void {
  writeFileSync(fileOf(name), `[\n${cases.map((one) => JSON.stringify(one)).join(',\n')}\n]\n`)
}

function fileOf(name: string): URL {
  return new URL(`corpus/${name}.json`, import.meta.url)
}

/** The object without server-specific values: uids, times, revisions and allocated values. */
export function comparable(object: KubeObject): KubeObject {
  const { uid = '', ...metadata } = object.metadata
  delete metadata.creationTimestamp
  delete metadata.resourceVersion
  delete metadata.managedFields
  const text = JSON.stringify({ ...object, metadata })
  const neutral = uid === '' ? text : text.replaceAll(uid, 'UID')
  const timeless = neutral.replace(/"(lastTransitionTime|lastPhaseTransitionTime)":"[^"]*"/g, '"$1":"TIME"')
  return maskAllocated(JSON.parse(timeless) as KubeObject)
}

interface ServiceSpec {
  clusterIP?: string
  clusterIPs?: string[]
  healthCheckNodePort?: number
  ports?: { nodePort?: number }[]
}

function maskAllocated(object: KubeObject): KubeObject {
  if (object.kind !== 'Service') return object
  const spec = object['spec'] as ServiceSpec
  if (spec.clusterIP?.startsWith('10.')) spec.clusterIP = 'IP'
  if (spec.clusterIPs) spec.clusterIPs = spec.clusterIPs.map((ip) => (ip.startsWith('10.') ? 'IP' : ip))
  if (spec.healthCheckNodePort !== undefined) spec.healthCheckNodePort = 0
  for (const port of spec.ports ?? []) if (port.nodePort !== undefined && port.nodePort !== 31234) port.nodePort = 0
  return object
}

/** Sorts the members of objects, so that two objects compare as text. */
export function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const keys = Object.keys(value).sort()
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key] ?? null)]))
}
