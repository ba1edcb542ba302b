// Questions to the person at the terminal. The text goes to standard error: standard output may be read by a program.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { ExitError } from './exit-error.ts'

/** The line that is typed. Rejects with ExitError at the end of input. `isHidden`: it is not shown. */
export async function askLine(
  text: string,
  { signal, isHidden = false }: { readonly signal: AbortSignal; readonly isHidden?: boolean },
): Promise<string> {
  process.stderr.write(text)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const output = isHidden ? silent : process.stderr
  const lines = createInterface({ input: process.stdin, output, terminal: process.stdin.isTTY, signal })
  try {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    lines.once('line', resolve)
    lines.once('close', () => reject(signal.aborted ? (signal.reason as Error) : new ExitError('nothing was typed in')))
    // A terminal in raw mode hands Ctrl-C to us.
    lines.once('SIGINT', () => reject(new ExitError('stopped')))
    return await promise
  } finally {
    lines.close()
    if (isHidden) process.stderr.write('\n')
  }
}
