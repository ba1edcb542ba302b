// The operator: a list of loops over our custom resources, started in order.
import { childSignal } from '../async/index.ts'
import { sharedInformers } from './informers.ts'
import { logicalClusterController } from './logical-cluster/index.ts'
import type { OperatorContext, OperatorController } from './operator-context.ts'

export { ensureCrds } from './install.ts'
export { type SharedInformers } from './informers.ts'
export { memberClusterController, type MemberClusterDeps, type MemberToSync } from './member-cluster/index.ts'
export { placementController, type PlacementDeps } from './placement/index.ts'
export { type ClusterUrls, type OperatorContext, type OperatorController } from './operator-context.ts'

export interface OperatorOptions extends Omit<OperatorContext, 'informers'> {
  /** Default: all of ours. */
  readonly controllers?: readonly OperatorController[]
  /** The operator's life. */
  readonly signal: AbortSignal
}

export interface RunningOperator extends AsyncDisposable {
  /** Resolves when the operator has ended; rejects when a controller could not start or broke. */
  readonly done: Promise<void>
}

/** Every controller of ours, in the order in which they start. */
export const allControllers: readonly OperatorController[] = [logicalClusterController]

/**
 * Starts the controllers one after the other; resolves once the last one works. They run until the signal aborts or the
 * operator is disposed of, which waits for visits under way. One that breaks ends them all.
 */
export async function startOperator({
  controllers = allControllers,
  signal,
  ...rest
}: OperatorOptions): Promise<RunningOperator> {
  const life = childSignal(signal)
  const context: OperatorContext = {
    ...rest,
    informers: sharedInformers(rest.clusters, { log: rest.log, signal: life.signal }),
  }
  const running: Promise<void>[] = []
  const end = (reason: unknown): void => life.abort(reason)
  const finish = async (): Promise<void> => {
    try {
      const failed = (await Promise.allSettled(running)).find((result) => result.status === 'rejected')
      if (failed !== undefined && failed.reason !== life.signal.reason) throw failed.reason
    } finally {
      life[Symbol.dispose]()
    }
  }
  for (const controller of controllers) {
    const { promise: started, resolve } = Promise.withResolvers<undefined>()
    const run = controller.run(context, { signal: life.signal, started: () => resolve(undefined) })
    running.push(run)
    run.catch((error: unknown) => {
      if (error !== life.signal.reason)
        rest.log.error('a controller of the operator broke', { controller: controller.name, error })
      end(error)
    })
    // A controller that ends before it works ends the start as well; finish() tells why.
    await Promise.race([started, run.catch(() => undefined)])
    if (life.signal.aborted) {
      await finish()
      break
    }
    rest.log.debug('a controller of the operator works', { controller: controller.name })
  }
  const done = finish()
  done.catch(() => undefined)
  return {
    done,
    async [Symbol.asyncDispose]() {
      end(new DOMException('the operator was stopped', 'AbortError'))
      await done
    },
  }
}
