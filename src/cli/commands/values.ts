// What the value of an argument or a flag names, so that shells complete it from the installation.
import type { Argument, Option } from 'commander'

export type Value = 'logicalCluster' | 'logicalClusters' | 'member' | 'kind' | 'workload' | 'explained' | 'used'

/** A word that may come next, with its description. */
export interface Candidate {
  readonly word: string
  readonly description: string
}

/** The key of the mark. Each bundle has its own copy of this module, so the marks cannot be in a variable of it. */
const mark = Symbol.for('kcp.dev/value')

interface Marked {
  [mark]?: Value
}

/** Marks an argument or a flag, and returns it. */
export function naming<T extends Argument | Option>(value: Value, target: T): T {
  ;(target as Marked)[mark] = value
  return target
}

/** What the value names; undefined if shells cannot complete it. */
export function valueOf(target: Argument | Option): Value | undefined {
  return (target as Marked)[mark]
}
