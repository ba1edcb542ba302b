// Distributed traces: the contract of a tracer, and the one of this process. Off by default: then there is no tracer,
// and nothing else of OpenTelemetry is loaded (open-tracer.ts).
import type { SpanReference } from './traceparent.ts'

/** Short values only: longer ones are cut. Never a token, a body, a query or Secret data. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** One step of a trace. */
export interface Span extends SpanReference {
  readonly hasEnded: boolean
  /** Adds attributes. */
  set(attributes: SpanAttributes): void
  /**
   * Marks the span as failed. `type` is a short constant such as a reason, never a message: messages carry data of
   * tenants.
   */
  fail(type: string): void
  /** Ends the span. Call it once. */
  end(): void
}

export interface SpanOptions {
  /** `server`: a request that came; `client`: a request that is sent. Default: neither. */
  readonly kind?: 'server' | 'client'
  /**
   * The span that this one is a step of. Default: the span begins a trace, which is sampled by the rate of the process.
   */
  readonly parent?: SpanReference | undefined
  /** A span that caused this one, and decides neither about its trace nor whether it is sampled. */
  readonly link?: SpanReference | undefined
  readonly attributes?: SpanAttributes
  /** As performance.now() gives it. Default: now. */
  readonly startedAt?: number
}

export interface Tracer {
  start(name: string, options?: SpanOptions): Span
  /** The innermost span that is open where this is called; undefined outside of all. */
  current(): Span | undefined
  /** Runs this inside the span, with all that it waits for. */
  within<T>(span: Span, run: () => T): T
}

let active: Tracer | undefined

/**
 * The tracer of this process; undefined where nothing is traced. There is one per process and not one per server,
 * because so it is with the asynchronous context in which it finds the current span. Threads have none.
 */
export function processTracer(): Tracer | undefined {
  return active
}

/** Makes it the tracer of this process, before anything is created that asks for it. The result takes it back. */
export function useTracer(tracer: Tracer): Disposable {
  if (active !== undefined) throw new Error('this process has a tracer already')
  active = tracer
  return { [Symbol.dispose]: () => void (active = undefined) }
}

/**
 * Runs a step as a span inside the current one, or inside `options.parent`. A step that returns no promise did not wait
 * for anything: it leaves no span, and neither does one of a trace that is not sampled.
 */
export function inSpan<R extends Promise<unknown> | undefined>(
  tracer: Tracer,
  name: string,
  run: (span: Span | undefined) => R,
  options: SpanOptions & { readonly parent?: Span | undefined } = {},
): R {
  const parent = options.parent ?? tracer.current()
  if (parent === undefined) return run(undefined)
  if (!parent.isSampled) return tracer.within(parent, () => run(undefined))
  return runIn(tracer, tracer.start(name, { ...options, parent }), run)
}

/** Runs work that nobody's request waits for, as a trace of its own. */
export function inNewTrace<R extends Promise<unknown>>(
  tracer: Tracer,
  name: string,
  run: () => R,
  attributes: SpanAttributes,
): R {
  return runIn(tracer, tracer.start(name, { attributes }), run)
}

function runIn<R extends Promise<unknown> | undefined>(tracer: Tracer, span: Span, run: (span: Span) => R): R {
  let waiting: R
  try {
    waiting = tracer.within(span, () => run(span))
  } catch (error) {
    span.fail(errorType(error))
    span.end()
    throw error
  }
  waiting?.then(
    () => span.end(),
    (error: unknown) => {
      span.fail(errorType(error))
      span.end()
    },
  )
  return waiting
}

/** Runs something later in the context of the caller. Without a tracer it is one function for all. */
export function currentContext(): <T>(run: () => T) => T {
  const span = active?.current()
  return span === undefined ? runDirectly : (run) => (active === undefined ? run() : active.within(span, run))
}

const runDirectly = <T>(run: () => T): T => run()

/** What kind of error it is: a reason or a code, else the name of its class. */
export function errorType(error: unknown): string {
  if (!(error instanceof Error)) return 'error'
  const { reason, code } = error as { reason?: unknown; code?: unknown }
  if (typeof reason === 'string' && reason !== '') return reason
  return typeof code === 'string' ? code : error.name
}
