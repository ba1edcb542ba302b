// What a person did wrong, or the machine lacks: one clear line and exit code 1, no stack.

export class ExitError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ExitError'
  }
}

/** The one line for whatever was thrown. */
export function messageOf(error: unknown): string {
  // What went wrong first; what then could not be closed in order says less.
  if (error instanceof SuppressedError) return messageOf(error.suppressed)
  const text = error instanceof Error ? error.message : String(error)
  return text.replaceAll('\n', ' ')
}
