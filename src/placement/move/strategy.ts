// The way a workload moves, from its kind and its spec.
import { workloadKindOfObject, type WorkloadKind } from '#crds/index.ts'

/**
 * The move of the kind; a Deployment that recreates its pods, or whose volume has one writer, must not run in two members at the
 * same time.
 */
export function moveKindOf(
  workload: { readonly kind: string },
  { usesSingleWriterVolume }: { readonly usesSingleWriterVolume: boolean },
): WorkloadKind['move'] {
  const move = workloadKindOfObject(workload)?.move ?? 'makeBeforeBreak'
  if (move !== 'makeBeforeBreak') return move
  const { strategy } = ((workload as { spec?: unknown }).spec ?? {}) as { strategy?: { type?: string } }
  return strategy?.type === 'Recreate' || usesSingleWriterVolume ? 'breakBeforeMake' : move
}
