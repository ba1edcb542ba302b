// What the value of an argument or a flag names, so that shells complete it from the installation.
import type { Argument, Option } from 'commander'

export type Value = 'logicalCluster' | 'logicalClusters' | 'member' | 'kind' | 'workload' | 'explained' | 'used'

const values = new WeakMap<Argument | Option, Value>()

/** Marks an argument or a flag, and returns it. */
export function naming<T extends Argument | Option>(value: Value, target: T): T {
  values.set(target, value)
  return target
}

/** What the value names; undefined if shells cannot complete it. */
export function valueOf(target: Argument | Option): Value | undefined {
  return values.get(target)
}
