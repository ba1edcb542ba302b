// What a simulated container does, by the name of its image and its command. docs/how-to/simulate-a-member.md lists
// these rules.
import type { Container } from '#simulation/cluster/objects.ts'

export interface Program {
  /** The image cannot be pulled. */
  readonly isMissing: boolean
  /** After how long the container ends; absent: it runs until it is stopped. */
  readonly endsAfterMs?: number
  readonly exitCode: number
  /** How long after its start the container is ready; Infinity: never. */
  readonly readyAfterMs: number
}

export interface Timing {
  /** From the binding of a pod to the start of its containers, if the image is on the node. */
  readonly startMs: number
  /** The pull of an image that is not on the node. */
  readonly pullMs: number
  /** From SIGTERM to the end of a container. */
  readonly stopMs: number
}

/** A pod is Ready after about a second, half of it for the image. */
export const usualTiming: Timing = { startMs: 400, pullMs: 600, stopMs: 1000 }

const slowMs = 20_000
const batchMs = 1000

/** `registry/path/name:tag@digest` in its parts. */
export function imageParts(image: string): { readonly name: string; readonly tag: string } {
  const [withoutDigest = ''] = image.split('@')
  const last = withoutDigest.split('/').at(-1) ?? ''
  const [name = '', tag = 'latest'] = last.split(':')
  return { name, tag }
}

/** `isBatch`: the container is expected to end, as in a Job or as an init container. */
export function programOf(container: Container, { isBatch }: { readonly isBatch: boolean }): Program {
  const { name, tag } = imageParts(container.image ?? '')
  const isMissing = tag === 'missing' || name === 'missing'
  const readyAfterMs = readinessMs(container, name)
  if (name === 'fails') return { isMissing, endsAfterMs: 300, exitCode: 1, readyAfterMs: Infinity }
  const words = [...(container.command ?? []), ...(container.args ?? [])].join(' ')
  const usual = isBatch && !isEndless(words) ? { endsAfterMs: batchMs } : {}
  return { isMissing, exitCode: 0, readyAfterMs, ...usual, ...commandOf(words) }
}

function readinessMs({ readinessProbe, startupProbe }: Container, name: string): number {
  if (name === 'never-ready') return Infinity
  const delay = Math.max(readinessProbe?.initialDelaySeconds ?? 0, startupProbe?.initialDelaySeconds ?? 0) * 1000
  return name === 'slow' ? slowMs : delay
}

/** A command that only waits. */
function isEndless(words: string): boolean {
  return /\bsleep (infinity|inf)\b|\bwhile (true|:)/.test(words)
}

/** `sleep SECONDS`, `exit CODE`, `true` and `false`, alone or in a shell's `-c`. */
function commandOf(words: string): Partial<Program> {
  const [, seconds] = /\bsleep (\d{1,9}(?:\.\d+)?)s?\b/.exec(words) ?? []
  const [, code] = /\bexit (\d{1,3})\b/.exec(words) ?? []
  if (isEndless(words)) return {}
  if (seconds !== undefined) return { endsAfterMs: Number(seconds) * 1000, exitCode: Number(code ?? 0) % 256 }
  if (code !== undefined) return { endsAfterMs: batchMs / 2, exitCode: Number(code) % 256 }
  if (/^(\/bin\/)?false$/.test(words)) return { endsAfterMs: batchMs / 2, exitCode: 1 }
  return /^(\/bin\/)?true$/.test(words) ? { endsAfterMs: batchMs / 2, exitCode: 0 } : {}
}
