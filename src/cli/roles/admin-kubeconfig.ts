// The kubeconfig of the installation's admin, beside the data of `kcp start`: made anew at each start, and before it
// expires.
import { rename, rm, writeFile } from 'node:fs/promises'
import type { Clock } from '#async/index.ts'
import { kubeconfigText } from '#client/index.ts'
import { renewedClientCertificate, type Pki } from '#virtualapi/index.ts'
import type { Renewal } from './keep-renewed.ts'

export interface AdminKubeconfig {
  readonly pki: Pki
  readonly file: string
  /** URL of the logical cluster `root`. */
  readonly server: string
  readonly clock?: Clock
}

/**
 * Writes the file (mode 0600) at the first call and when its certificate must be renewed. The former certificate stays
 * valid.
 */
export function adminKubeconfigRenewal({ pki, file, server, ...options }: AdminKubeconfig): Renewal {
  const request = {
    commonName: 'kcp-admin',
    organizations: ['system:masters'],
    realm: 'installation',
    days: 365,
  } as const
  const certificate = renewedClientCertificate(pki, request, options)
  let written = ''
  return {
    what: 'admin.kubeconfig',
    async renew() {
      const { certificate: cert, key } = await certificate()
      if (cert === written) return
      await writePrivate(file, kubeconfigText({ name: 'root', server, ca: pki.servingCa, cert, key }))
      written = cert
    },
  }
}

async function writePrivate(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}`
  try {
    await writeFile(temporary, text, { mode: 0o600 })
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
