// The limit of ten managers of updates: the oldest ones are merged into one, called ancient-changes.
import { emptySet, union } from './field-set.ts'
import { managerIdentifier, secondsOf, type Managed } from './managed-entries.ts'

const maxUpdateManagers = 10
const oldUpdates = 'ancient-changes'

/** Merges the oldest update managers, separately for each version, until there are no more than `maxUpdateManagers`. */
export function capUpdateManagers({ managers, times }: Managed): Managed {
  const updaters = [...managers].filter(([, { applied }]) => !applied).map(([name]) => name)
  if (updaters.length <= maxUpdateManagers) return { managers, times }
  updaters.sort((a, b) => secondsOf(times.get(a)) - secondsOf(times.get(b)) || (a < b ? -1 : 1))
  const result = new Map(managers)
  const newTimes = new Map(times)
  const firstOf = new Map<string, string>()
  let left = updaters.length
  for (const name of updaters) {
    if (left <= maxUpdateManagers) break
    const owned = result.get(name)
    if (owned === undefined) continue
    const { apiVersion } = owned
    const first = firstOf.get(apiVersion)
    if (first === undefined) {
      firstOf.set(apiVersion, name)
      continue
    }
    const bucket = managerIdentifier({ manager: oldUpdates, operation: 'Update', apiVersion })
    const kept = result.get(bucket) ?? result.get(first)
    if (!result.has(bucket)) result.delete(first)
    result.set(bucket, { ...owned, fields: union(owned.fields, kept?.fields ?? emptySet) })
    result.delete(name)
    left--
    const time = times.get(name)
    if (time === undefined) newTimes.delete(bucket)
    else newTimes.set(bucket, time)
  }
  return { managers: result, times: newTimes }
}
