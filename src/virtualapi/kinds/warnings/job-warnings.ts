// Warnings about Jobs and Job templates.
import type { V1JobSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { templateWarnings } from './pod-warnings.ts'

const manyCompletions = 100_000
const muchAtOnce = 10_000

/** Warnings about the spec of a Job at `path`. */
export function jobSpecWarnings(path: string, spec: Data<V1JobSpec> | undefined): string[] {
  if (spec === undefined) return []
  const { completionMode, completions = 0, parallelism = 0, template } = spec
  const tooLarge = completionMode === 'Indexed' && completions > manyCompletions && parallelism > muchAtOnce
  return [
    ...(tooLarge
      ? [
          `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail`,
        ]
      : []),
    ...templateWarnings(`${path}.template`, template),
  ]
}
