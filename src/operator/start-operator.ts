// The operator: controllers of our custom resources, started in order.
import { childSignal } from '#async/index.ts'
import { sharedInformers } from '#client/index.ts'
import type { OperatorContext, OperatorController } from './framework/operator-context.ts'
import { logicalClusterController } from './logical-cluster/controller.ts'
import { sleepController } from './sleep/controller.ts'

export interface OperatorOptions extends Omit<OperatorContext, 'informers' | 'tenantInformers'> {
  /** Default: allControllers. */
  readonly controllers?: readonly OperatorController[]
  readonly signal: AbortSignal
}

export interface RunningOperator extends AsyncDisposable {
  /** Resolves when the operator has ended; rejects if a controller could not start or failed. */
  readonly done: Promise<void>
}

/** The controllers that need nothing but the context. */
export const allControllers: readonly OperatorController[] = [logicalClusterController(), sleepController()]

/**
 * Starts the controllers one after the other; resolves when the last one works. They run until the signal aborts or the
 * operator is disposed of, which waits for running reconciles. A controller that fails ends all of them.
 */
export async function startOperator({
  controllers = allControllers,
  signal,
  ...rest
}: OperatorOptions): Promise<RunningOperator> {
  const life = childSignal(signal)
  const informerOptions = { log: rest.log, signal: life.signal }
  const context: OperatorContext = {
    ...rest,
    informers: sharedInformers(rest.clusters, informerOptions),
    tenantInformers: sharedInformers(rest.virtual('/clusters/*'), { ...informerOptions, allClusters: true }),
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
        rest.log.error('a controller of the operator failed', { controller: controller.name, error })
      end(error)
    })
    // If the controller ends before it has started, finish() below rejects with the reason.
    await Promise.race([started, run.catch(() => undefined)])
    if (life.signal.aborted) {
      await finish()
      break
    }
    rest.log.debug('a controller of the operator has started', { controller: controller.name })
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
