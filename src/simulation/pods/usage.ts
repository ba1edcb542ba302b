// What simulated pods use: a part of their requests, and more with the requests that they answer.
import { createHash } from 'node:crypto'
import { timestamp } from '#async/index.ts'
import { amountsOf } from '#apimachinery/quantity/index.ts'
import type { PodRun } from '#simulation/nodes/pod-run.ts'

const [idleMillicores, millicoresPerRequest, idleMebibytes] = [2, 1.5, 12]
const windowSeconds = 15

export interface Usage {
  readonly timestamp: string
  readonly window: string
  readonly containers: readonly {
    readonly name: string
    readonly usage: { readonly cpu: string; readonly memory: string }
  }[]
}

/** The usage of a running pod; undefined before its first container runs. */
export function usageOf(run: PodRun): Usage | undefined {
  const running = run.containers.filter(({ isRunning }) => isRunning)
  if (running.length === 0) return undefined
  const rate = run.rate / running.length
  const containers = running.map(({ container }) => {
    const requests = amountsOf(container.resources?.requests)
    const cpu = Number((requests.get('cpu')?.nanos ?? 0n) / 1_000_000n)
    const memory = Number((requests.get('memory')?.nanos ?? 0n) / 1_000_000_000n) / 1024 / 1024
    const share = 0.5 + shareOf(`${run.uid}${container.name}`) / 4
    const millicores = Math.max(idleMillicores, cpu * 0.1) + rate * millicoresPerRequest
    return {
      name: container.name,
      usage: {
        cpu: `${Math.round(millicores * 1_000_000)}n`,
        memory: `${Math.round(Math.max(idleMebibytes, memory * share) * 1024)}Ki`,
      },
    }
  })
  return { timestamp: timestamp(Date.now()), window: `${windowSeconds}s`, containers }
}

/** A number from 0 to 1 that stays the same for a text. */
function shareOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt16BE(0) / 0xffff
}
