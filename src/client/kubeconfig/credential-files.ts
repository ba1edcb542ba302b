// A kubeconfig with credentials in files of their own, as minikube, kubelets and projected tokens use. The files are
// read again while the program runs, because others renew them.
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { badRequest } from '#apimachinery/status/index.ts'
import type { Endpoint, EndpointSource } from './endpoint.ts'
import type { PlainCluster, PlainUser } from './kubeconfig-check.ts'

/**
 * Milliseconds after which the files are read again. client-go reads a token file again after a minute, and
 * certificates after five.
 */
const refreshAfterMs = 30_000

/**
 * Relative paths begin at `directory`. If credentials are both in the kubeconfig and in a file, client-go's rule
 * applies: certificates and keys from the kubeconfig, the token from the file. `endpoint()` rejects with BadRequest if
 * a file cannot be read, or if certificate and key do not match because only one is renewed.
 */
export function credentialFiles(
  { cluster, user }: { readonly cluster: PlainCluster; readonly user: PlainUser },
  { directory, where }: { readonly directory: string; readonly where: string },
): EndpointSource {
  const read = async (path: string): Promise<Buffer> => {
    const file = resolve(directory, path)
    return await readFile(file).catch((error: unknown) => {
      throw badRequest(`${where}: could not read "${file}": ${(error as Error).message}`, error)
    })
  }
  const pem = async (data: string | undefined, path: string | undefined): Promise<Buffer | undefined> => {
    if (data) return Buffer.from(data, 'base64')
    return path ? await read(path) : undefined
  }
  const tokenOf = async (path: string): Promise<string> => {
    const token = (await read(path)).toString('utf8').trim()
    if (token === '') throw badRequest(`${where}: the token file "${path}" is empty`)
    return token
  }
  return {
    refreshAfterMs,
    async endpoint() {
      const ca = await pem(cluster['certificate-authority-data'], cluster['certificate-authority'])
      const cert = await pem(user['client-certificate-data'], user['client-certificate'])
      const key = await pem(user['client-key-data'], user['client-key'])
      const token = user.tokenFile ? await tokenOf(user.tokenFile) : user.token
      return checkedEndpoint(endpointOf(cluster, { ca, cert, key, token }), where)
    },
  }
}

interface Credentials {
  readonly ca: Buffer | undefined
  readonly cert: Buffer | undefined
  readonly key: Buffer | undefined
  readonly token: string | undefined
}

/** The cluster with these credentials. Empty credentials are left out. */
export function endpointOf(cluster: PlainCluster, { ca, cert, key, token }: Credentials): Endpoint {
  return {
    server: cluster.server,
    ...(ca && { ca }),
    ...(cert && key && { cert, key }),
    ...(token && { token }),
    ...(cluster['tls-server-name'] && { serverName: cluster['tls-server-name'] }),
    ...(cluster['proxy-url'] && { proxyUrl: cluster['proxy-url'] }),
    ...(cluster['insecure-skip-tls-verify'] === true && { insecureSkipTlsVerify: true }),
  }
}

/**
 * Throws BadRequest if TLS cannot use the certificates or the key. Otherwise each request would fail with an OpenSSL
 * error.
 */
export function checkedEndpoint(endpoint: Endpoint, where: string): Endpoint {
  const { ca, cert, key } = endpoint
  try {
    createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) })
  } catch (error) {
    throw badRequest(`${where}: its certificates or key can't be used: ${(error as Error).message}`, error)
  }
  return endpoint
}
