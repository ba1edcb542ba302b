// OpenID Connect discovery for verifiers of ServiceAccount tokens: the issuer and its public keys.
import { pageNotFound, pathNotFound } from '#apimachinery/status/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { issuerOf } from '#virtualapi/auth/authn/index.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

/** `/.well-known/openid-configuration` and `/openid/v1/jwks` of a logical cluster. Throws 404 for other paths. */
export async function tokenDiscovery(
  exchange: Exchange,
  { accountTokens }: Pick<EndpointDependencies, 'accountTokens'>,
  path: string,
): Promise<ApiResponse> {
  const { cluster, info } = exchange
  if (cluster === undefined) throw pathNotFound()
  // The response is private, because it contains the host name that this client used.
  const caching = { 'cache-control': 'private, max-age=3600' }
  if (path === '/.well-known/openid-configuration')
    return jsonDocument(
      {
        issuer: issuerOf(cluster.id),
        jwks_uri: `https://${exchange.header('host') ?? exchange.header(':authority') ?? 'kubernetes.default.svc'}${info.basePath}/openid/v1/jwks`,
        response_types_supported: ['id_token'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: [accountTokens.algorithm],
      },
      { headers: caching },
    )
  if (path !== '/openid/v1/jwks') throw pageNotFound()
  const headers = { 'content-type': 'application/jwk-set+json', ...caching }
  return jsonDocument(await accountTokens.keys(), { headers })
}
