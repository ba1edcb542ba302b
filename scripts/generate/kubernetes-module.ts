// Finds the Go module with Kubernetes' sources and published documents, in the version pinned by go/go.mod.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Directory of the unpacked module k8s.io/kubernetes; the go command downloads it if needed. */
export function kubernetesModuleDir(): string {
  const text = execFileSync('go', ['mod', 'download', '-json', 'k8s.io/kubernetes'], {
    cwd: join(root, 'scripts/generate/go'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { Dir: dir } = JSON.parse(text) as { Dir?: string }
  if (dir === undefined) throw new Error('the go command did not say where k8s.io/kubernetes is')
  return dir
}
