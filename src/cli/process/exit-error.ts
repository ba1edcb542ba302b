// An error of the user or the machine: printed as one line, exit code 1, no stack.

export class ExitError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ExitError'
  }
}

/** The end of a program that ran in our place: its exit code is ours, and nothing is printed. */
export class ExitCode extends Error {
  readonly code: number

  constructor(code: number) {
    super(`exit code ${code}`)
    this.name = 'ExitCode'
    this.code = code
  }
}

/** The exit code of an ExitCode; undefined for every other error. Compares names, as `messageOf` does. */
export function exitCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || error.name !== 'ExitCode') return undefined
  return (error as { readonly code?: number }).code
}

const unreached = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ECONNRESET']

/** One line for any thrown value; for an unreachable server it says what to check. */
export function messageOf(error: unknown): string {
  // The first error is the cause; an error while closing says less.
  if (error instanceof SuppressedError) return messageOf(error.suppressed)
  const text = error instanceof Error ? error.message : String(error)
  const { code } = ((error as { cause?: unknown } | undefined)?.cause ?? {}) as { code?: unknown }
  // An ExitError says itself what to do. Compares names, because each command is bundled with its own copy of the
  // class.
  const isComplete = error instanceof Error && error.name === 'ExitError'
  const hint =
    !isComplete && unreached.some((one) => one === code)
      ? ': does that server run, and is its address in the kubeconfig right?'
      : ''
  return text.replaceAll('\n', ' ') + hint
}
