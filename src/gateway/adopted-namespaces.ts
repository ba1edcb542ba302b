// The namespaces of this member that belong to logical clusters under names of their own, as the syncer tells: gateways
// call a namespace by its usual name, ID-NAME, which it has in all other members.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseDownstreamNamespace } from '#crds/index.ts'

type OnChange<T> = (key: string, before: T | undefined, after: T | undefined) => void

export class AdoptedNamespaces {
  /** Usual names by the names here, and the reverse. */
  #usual: ReadonlyMap<string, string> = new Map()
  #here: ReadonlyMap<string, string> = new Map()
  readonly #followers = new Set<(usualBefore: (namespace: string) => string | undefined) => void>()

  /** The usual name of a namespace of this member; undefined if it belongs to no logical cluster. */
  usualNameOf(namespace: string): string | undefined {
    return usualIn(this.#usual, namespace)
  }

  /** The name of a namespace in this member. */
  nameHere(usual: string): string {
    return this.#here.get(usual) ?? usual
  }

  /** Takes the names from the ConfigMap, whose data has the usual name for each name here. */
  set(configMap: KubeObject | undefined): void {
    const before = this.#usual
    const data = (configMap?.['data'] ?? {}) as Readonly<Record<string, string>>
    const pairs = Object.entries(data).filter(
      ([name, usual]) => parseDownstreamNamespace(name) === undefined && parseDownstreamNamespace(usual) !== undefined,
    )
    this.#usual = new Map(pairs)
    this.#here = new Map(pairs.map(([name, usual]) => [usual, name]))
    for (const follow of this.#followers) follow((namespace) => usualIn(before, namespace))
  }

  /**
   * A handler of records that passes on those in namespaces of logical clusters, each as `read` says with the usual name
   * of its namespace. When a namespace gets a usual name, or loses it, the records in it come or go.
   */
  admitting<R extends { readonly namespace: string }, T>(
    read: (record: R, usual: string) => T | undefined,
    onChange: OnChange<T>,
  ): OnChange<R> {
    /** Records in namespaces with names of their own. */
    const foreign = new Map<string, R>()
    const admitted = (record: R | undefined, usual: string | undefined): T | undefined =>
      record === undefined || usual === undefined ? undefined : read(record, usual)
    const pass: OnChange<T> = (key, before, after) => {
      if (before !== undefined || after !== undefined) onChange(key, before, after)
    }
    this.#followers.add((usualBefore) => {
      for (const [key, record] of foreign) {
        const [was, is] = [usualBefore(record.namespace), this.usualNameOf(record.namespace)]
        if (was !== is) pass(key, admitted(record, was), admitted(record, is))
      }
    })
    return (key, before, after) => {
      const of = (record: R | undefined): T | undefined =>
        admitted(record, record && this.usualNameOf(record.namespace))
      if (after !== undefined && parseDownstreamNamespace(after.namespace) === undefined) foreign.set(key, after)
      else foreign.delete(key)
      pass(key, of(before), of(after))
    }
  }
}

function usualIn(known: ReadonlyMap<string, string>, namespace: string): string | undefined {
  return parseDownstreamNamespace(namespace) === undefined ? known.get(namespace) : namespace
}
