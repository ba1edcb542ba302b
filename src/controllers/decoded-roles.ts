// What aggregation needs of ClusterRoles, decoded once per change of a role.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { LabelSelectorSource } from '#apimachinery/selector/index.ts'
import type { SelectedObject } from '#reconcile/object-graph/index.ts'

/** A rule with a text that is the same for like rules, whatever the order of their fields. */
export interface KeyedRule {
  readonly text: string
  readonly rule: unknown
}

export interface DecodedRole {
  readonly name: string
  readonly rules: readonly KeyedRule[]
  /** Each different selector of its aggregation rule once; empty if its rules are not aggregated. */
  readonly selectors: readonly LabelSelectorSource[]
}

/** JSON of the roles that stay decoded, of all logical clusters together. */
const maxCachedBytes = 16 * 1024 * 1024
/** What a decoded role takes besides its JSON. */
const overheadBytes = 1024

/** Decodes roles, and keeps those that were asked for last. */
export class DecodedRoles {
  readonly #kept = new Map<string, { readonly revision: number; readonly bytes: number; readonly role: DecodedRole }>()
  #bytes = 0
  /** How many roles were decoded so far. */
  decodings = 0

  of({ key, revision, bytes, object }: SelectedObject): DecodedRole {
    const id = `${key.cluster}/${key.name}`
    const known = this.#kept.get(id)
    if (known?.revision === revision) return known.role
    if (known !== undefined) this.#drop(id, known.bytes)
    const role = decodeRole(object())
    this.decodings++
    this.#kept.set(id, { revision, bytes: bytes + overheadBytes, role })
    this.#bytes += bytes + overheadBytes
    for (const [oldest, entry] of this.#kept) {
      if (this.#bytes <= maxCachedBytes) break
      this.#drop(oldest, entry.bytes)
    }
    return role
  }

  #drop(id: string, bytes: number): void {
    this.#kept.delete(id)
    this.#bytes -= bytes
  }
}

/** The parts of a ClusterRole that aggregation needs. */
export function decodeRole(object: KubeObject): DecodedRole {
  const { aggregationRule, rules } = object
  const selectors = isJsonObject(aggregationRule) ? aggregationRule['clusterRoleSelectors'] : undefined
  const sources: LabelSelectorSource[] = Array.isArray(selectors) ? selectors.filter(isJsonObject) : []
  return {
    name: object.metadata.name ?? '',
    rules: (Array.isArray(rules) ? (rules as unknown[]) : []).map((rule) => ({ text: canonical(rule), rule })),
    selectors: [...new Map(sources.map((source) => [canonical(source), source])).values()],
  }
}

/** JSON with sorted keys and without empty lists. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (!isJsonObject(part) || JSON.isRawJSON(part)) return part
    const kept = Object.entries(part).filter(([, item]) => !(Array.isArray(item) && item.length === 0))
    return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
