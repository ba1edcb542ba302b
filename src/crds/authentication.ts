// spec.authentication of LogicalClusters: issuers of tokens that the logical cluster trusts, in the shape of
// AuthenticationConfiguration (apiserver.config.k8s.io/v1, KEP-3331).
import type { JsonSchema } from './crd.ts'

export interface ClusterAuthentication {
  readonly jwt?: readonly JwtIssuer[]
}

/** `jwt[]` of an AuthenticationConfiguration, unchecked. */
export interface JwtIssuer {
  readonly issuer: {
    readonly url: string
    readonly discoveryURL?: string
    readonly certificateAuthority?: string
    readonly audiences: readonly string[]
    readonly audienceMatchPolicy?: string
    readonly egressSelectorType?: string
  }
  readonly claimValidationRules?: readonly {
    readonly claim?: string
    readonly requiredValue?: string
    readonly expression?: string
    readonly message?: string
  }[]
  readonly claimMappings: {
    readonly username: PrefixedClaim
    readonly groups?: PrefixedClaim
    readonly uid?: { readonly claim?: string; readonly expression?: string }
    readonly extra?: readonly { readonly key: string; readonly valueExpression: string }[]
  }
  readonly userValidationRules?: readonly { readonly expression: string; readonly message?: string }[]
}

export interface PrefixedClaim {
  readonly claim?: string
  readonly prefix?: string
  readonly expression?: string
}

const text = { type: 'string', maxLength: 1024 } as const
const expression = { type: 'string', maxLength: 2048 } as const
const rulesOf = (properties: Readonly<Record<string, JsonSchema>>, description: string): JsonSchema => ({
  type: 'array',
  description,
  maxItems: 16,
  'x-kubernetes-list-type': 'atomic',
  items: { type: 'object', properties },
})
const mapping: JsonSchema = {
  type: 'object',
  properties: {
    claim: { ...text, description: 'The claim with the value.' },
    prefix: { ...text, description: 'Goes before the value of the claim; required with claim, and may be empty.' },
    expression: { ...expression, description: 'A CEL expression over claims, instead of claim and prefix.' },
  },
}

export const clusterAuthenticationSchema: JsonSchema = {
  type: 'object',
  description:
    'Identity providers whose tokens are valid in this logical cluster, besides those of the installation. The fields are those of AuthenticationConfiguration of Kubernetes. No user gets a name or a group that begins with system: this way.',
  properties: {
    jwt: {
      type: 'array',
      description: 'Issuers of JSON Web Tokens.',
      maxItems: 8,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        required: ['issuer', 'claimMappings'],
        properties: {
          issuer: {
            type: 'object',
            required: ['url', 'audiences'],
            properties: {
              url: { ...text, pattern: '^https://', description: 'Claim iss of its tokens.' },
              discoveryURL: { ...text, pattern: '^https://', description: 'Default: below url.' },
              certificateAuthority: {
                type: 'string',
                maxLength: 32768,
                description: 'PEM certificates that sign those of the provider. Default: the usual authorities.',
              },
              audiences: {
                type: 'array',
                minItems: 1,
                maxItems: 16,
                'x-kubernetes-list-type': 'atomic',
                items: text,
                description: 'A token must have one of them.',
              },
              audienceMatchPolicy: { type: 'string', enum: ['MatchAny'] },
            },
          },
          claimValidationRules: rulesOf(
            { claim: text, requiredValue: text, expression, message: text },
            'Conditions that the claims must meet.',
          ),
          claimMappings: {
            type: 'object',
            required: ['username'],
            description: 'The user of a token.',
            properties: {
              username: mapping,
              groups: mapping,
              uid: { type: 'object', properties: { claim: text, expression } },
              extra: {
                type: 'array',
                maxItems: 16,
                'x-kubernetes-list-type': 'atomic',
                items: {
                  type: 'object',
                  required: ['key', 'valueExpression'],
                  properties: { key: text, valueExpression: expression },
                },
              },
            },
          },
          userValidationRules: rulesOf({ expression, message: text }, 'Conditions that the user must meet.'),
        },
      },
    },
  },
}
