// The program of test/clients/oracle: what Kubernetes' own Go libraries make of texts.
import { join } from 'node:path'
import { runCommand } from '#test/support/index.ts'
import { compile, ensureClientProgram } from './client-program.ts'

export interface Question {
  readonly ask: string
  readonly args: readonly string[]
}

/** Answers many questions at once, in their order. Builds the program if it is not cached. */
export async function askGo<ApiResponse>(questions: readonly Question[]): Promise<ApiResponse[]> {
  const dir = await ensureClientProgram({
    name: 'oracle',
    folder: 'oracle',
    build: (out, source) =>
      compile('go', ['build', '-trimpath', '-ldflags=-s -w', '-o', join(out, 'oracle'), '.'], {
        cwd: source,
        env: { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' },
      }),
  })
  const input = questions.map((question) => `${JSON.stringify(question)}\n`).join('')
  const { stdout } = await runCommand(join(dir, 'oracle'), [], { input, timeoutMs: 60_000 })
  const responses = stdout.trimEnd().split('\n')
  if (responses.length !== questions.length)
    throw new Error(`${responses.length} answers to ${questions.length} questions`)
  return responses.map((response) => JSON.parse(response) as ApiResponse)
}
