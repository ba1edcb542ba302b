// A Git repository on disk with one commit per set of files.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runCommand } from '#test/support/index.ts'

const author = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false']

export interface GitRepository {
  readonly dir: string
  /** Replaces all files by these (texts by path) and commits. Resolves with the commit's hash. */
  commit(files: Readonly<Record<string, string>>): Promise<string>
}

/** Creates it in this folder. The files lie below `manifests`. */
export async function createGitRepository(dir: string): Promise<GitRepository> {
  mkdirSync(dir, { recursive: true })
  const git = async (...args: string[]): Promise<string> =>
    (await runCommand('git', [...author, ...args], { cwd: dir })).stdout.trim()
  await git('init', '--quiet')
  return {
    dir,
    async commit(files) {
      rmSync(join(dir, 'manifests'), { recursive: true, force: true })
      for (const [path, text] of Object.entries({ '.keep': '', ...files })) {
        const file = join(dir, 'manifests', path)
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(file, text)
      }
      await git('add', '--all')
      await git('commit', '--quiet', '--allow-empty', '-m', 'change')
      return git('rev-parse', 'HEAD')
    },
  }
}
