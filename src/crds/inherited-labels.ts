// The labels by which rules of admins select a logical cluster: its own, and those of its ancestors. A child that a
// tenant creates has no labels of its own, so the rules for the parent hold for it.
import { childNameLabel, maxLevelsBelow } from './logical-cluster.ts'

type Labels = Readonly<Record<string, string>>

/** A logical cluster in the tree. */
interface Labelled {
  readonly labels?: Labels | undefined
  /** The name of the parent. */
  readonly parent?: string | undefined
}

/** The labels of a logical cluster with those of its ancestors; of several values, the nearest counts. */
export function labelsInTree(cluster: Labelled, find: (name: string) => Labelled | undefined): Labels | undefined {
  if (cluster.parent === undefined) return cluster.labels
  let labels: Labels = { ...cluster.labels }
  let above = find(cluster.parent)
  for (let level = 0; above !== undefined && level < maxLevelsBelow; level++) {
    const { [childNameLabel]: _name, ...inherited } = above.labels ?? {}
    labels = { ...inherited, ...labels }
    above = above.parent === undefined ? undefined : find(above.parent)
  }
  return Object.keys(labels).length === 0 ? undefined : labels
}
