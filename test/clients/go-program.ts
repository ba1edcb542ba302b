// The program of test/clients/go: scenarios of client-go, one per run.
import { join } from 'node:path'
import { compile, ensureClientProgram } from './client-program.ts'

/** Path of the program of test/clients/go, built with the modules of this file if it is not cached. */
export async function ensureGoClients(moduleFile: string): Promise<string> {
  const module = moduleFile.slice(0, -'.mod'.length)
  const isSource = (file: string): boolean => file.endsWith('.go') || file.startsWith(`${module}.`)
  const dir = await ensureClientProgram({
    name: `clients-go-${module}`,
    folder: 'go',
    isSource,
    build: (out, source) =>
      compile(
        'go',
        ['build', `-modfile=${moduleFile}`, '-trimpath', '-ldflags=-s -w', '-o', join(out, 'clients'), '.'],
        {
          cwd: source,
          env: { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' },
        },
      ),
  })
  return join(dir, 'clients')
}
