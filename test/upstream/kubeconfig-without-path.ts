import { readFileSync, writeFileSync } from 'node:fs'
import type { Tenant } from '#test/integration/kcp-instance.ts'

/**
 * Writes a kubeconfig whose server address has no path beside the tenant's own, and returns its file: the client
 * certificate leads to the logical cluster. `kubectl proxy` leaves out the path of the address, so tests that start it
 * need this.
 */
export function kubeconfigWithoutPath({
  name,
  kubeconfig,
  base,
}: Pick<Tenant, 'name' | 'kubeconfig' | 'base'>): string {
  const file = kubeconfig.replace(`${name}.kubeconfig`, `${name}-without-path.kubeconfig`)
  const own = readFileSync(kubeconfig, 'utf8')
  const changed = own.replace(new RegExp(`^( *server: .*)${base}$`, 'm'), '$1')
  if (changed === own) throw new Error(`the address in ${kubeconfig} does not end with ${base}`)
  writeFileSync(file, changed, { mode: 0o600 })
  return file
}
