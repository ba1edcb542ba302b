// Taints of members and tolerations of Placements, with the same rules as taints of nodes and tolerations of pods.
import type { Taint } from '#crds/index.ts'

export interface Toleration {
  /** Absent, with operator Exists: all keys. */
  readonly key?: string
  /** Default Equal. */
  readonly operator?: 'Equal' | 'Exists'
  readonly value?: string
  /** Absent: all effects. */
  readonly effect?: Taint['effect']
}

/** The first taint with one of these effects that is not tolerated. */
export function firstUntolerated(
  taints: readonly Readonly<Taint>[] | undefined,
  tolerations: readonly Toleration[],
  effects: readonly Taint['effect'][],
): Readonly<Taint> | undefined {
  return taints?.find(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  )
}

/** As `kubectl describe node` prints it: `key=value:Effect`. */
export function taintText({ key, value, effect }: Readonly<Taint>): string {
  return `${key}${value === undefined || value === '' ? '' : `=${value}`}:${effect}`
}

function tolerates({ key = '', operator = 'Equal', value = '', effect }: Toleration, taint: Readonly<Taint>): boolean {
  if (effect !== undefined && effect !== taint.effect) return false
  if (key !== '' && key !== taint.key) return false
  if (operator === 'Exists') return true
  return key !== '' && value === (taint.value ?? '')
}
