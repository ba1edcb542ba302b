// Exit codes: 0 success, 1 failed, 2 wrong usage. An error of the user or the machine is one line, without a stack.

export class ExitError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ExitError'
  }
}

/** The exit code of a command that was called in a wrong way. */
export const usageCode = 2

/** A mistake in the arguments, found by the command itself: exit code 2. */
export class UsageError extends ExitError {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
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

/** The exit code of a command that has thrown this. */
export function codeOf(error: unknown): number {
  return exitCodeOf(error) ?? (error instanceof Error && error.name === 'UsageError' ? usageCode : 1)
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
  const isComplete = error instanceof Error && (error.name === 'ExitError' || error.name === 'UsageError')
  const hint =
    !isComplete && unreached.some((one) => one === code)
      ? ': does that server run, and is its address in the kubeconfig right?'
      : ''
  return text.replaceAll('\n', ' ') + hint
}
