// What a person did wrong, or the machine lacks: one clear line and exit code 1, no stack.

export class ExitError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ExitError'
  }
}

const unreached = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ECONNRESET']

/** The one line for whatever was thrown, with what to look at where a server can't be reached. */
export function messageOf(error: unknown): string {
  // What went wrong first; what then could not be closed in order says less.
  if (error instanceof SuppressedError) return messageOf(error.suppressed)
  const text = error instanceof Error ? error.message : String(error)
  const { code } = ((error as { cause?: unknown } | undefined)?.cause ?? {}) as { code?: unknown }
  const hint = unreached.some((one) => one === code)
    ? ': does that server run, and is its address in the kubeconfig right?'
    : ''
  return text.replaceAll('\n', ' ') + hint
}
