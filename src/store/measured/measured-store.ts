// A Store that measures another one: how long each operation takes, and how it ends.
import { inSpan, processTracer, type Histogram, type Metrics } from '#telemetry/index.ts'
import { isStoreError, type Store } from '#store/index.ts'

export interface MeasuredStoreOptions {
  /** The backend; the value of label `store`. */
  readonly name: 'etcd' | 'host' | 'postgres' | 'sqlite'
  readonly metrics: Pick<Metrics, 'histogram'>
}

type Operation = 'get' | 'list' | 'create' | 'update' | 'delete' | 'delete_cluster' | 'changes'

/**
 * The same store; every operation but watches is observed in `kcp_store_operation_duration_seconds`. Label `outcome` is
 * `ok`, `aborted` (the caller gave up), the code of a StoreError, or `error`. In a trace, each operation is a span.
 */
export function measuredStore(store: Store, { name, metrics }: MeasuredStoreOptions): Store {
  const seconds = metrics.histogram({
    name: 'kcp_store_operation_duration_seconds',
    help: 'Time that the store takes for one operation',
    labels: ['store', 'operation', 'outcome'],
  })
  const measure = traced(measureWith(seconds, name), name)
  return {
    maxValueBytes: store.maxValueBytes,
    instanceId: store.instanceId,
    mayLoseRenewals: (resource) => store.mayLoseRenewals?.(resource) ?? false,
    get: (key, options) => measure('get', options, () => store.get(key, options)),
    list: (scope, options) => measure('list', options, () => store.list(scope, options)),
    create: (key, value, options) => measure('create', options, () => store.create(key, value, options)),
    update: (key, value, options) => measure('update', options, () => store.update(key, value, options)),
    delete: (key, options) => measure('delete', options, () => store.delete(key, options)),
    deleteCluster: (cluster, options) =>
      measure('delete_cluster', options, () => store.deleteCluster(cluster, options)),
    changes: (scope, options) => measure('changes', options, () => store.changes(scope, options)),
    watch: (options) => store.watch(options),
    revision: (options) => store.revision(options),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

type Measure = ReturnType<typeof measureWith>

/** Measures in the same way, and adds a span for the operation to the trace of the request that waits for it. */
function traced(measure: Measure, store: string): Measure {
  const tracer = processTracer()
  if (tracer === undefined) return measure
  return (operation, options, run) =>
    inSpan(tracer, `Store ${operation}`, () => measure(operation, options, run), { attributes: { store } })
}

/** Measures an operation without a delay for its caller. */
function measureWith(seconds: Histogram, store: string) {
  return <T>(operation: Operation, { signal }: { signal: AbortSignal }, run: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now()
    const observe = (outcome: string): void =>
      seconds.observe((performance.now() - startedAt) / 1000, { store, operation, outcome })
    const running = run()
    running.then(
      () => observe('ok'),
      (error: unknown) => observe(isStoreError(error) ? error.code : signal.aborted ? 'aborted' : 'error'),
    )
    return running
  }
}
