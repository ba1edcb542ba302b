// The identity providers of the installation, from the file of `--authentication-config`.
import type { Logger } from '#telemetry/index.ts'
import { followConfiguration, type VirtualApiOptions } from '#virtualapi/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'

/** What the file says now; undefined without a file. Rejects with ExitError if the file has an error. */
export async function followSignIn(
  file: string | undefined,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<VirtualApiOptions['signIn']> {
  if (file === undefined) return undefined
  const options = { disallowed: [], log, signal }
  const followed = await followConfiguration(file, options).catch((error: unknown) => {
    throw new ExitError(`--authentication-config ${file}: ${error instanceof Error ? error.message : String(error)}`)
  })
  return () => followed.current()
}
