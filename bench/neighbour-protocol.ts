// What is said between a measurement and its noisy-client.ts.

/** What one tenant floods the server with. */
export const noises = ['creates', 'lists', 'bodies', 'watches'] as const
export type Noise = (typeof noises)[number]

export type ToNoisyClient =
  { readonly start: Noise; readonly kubeconfig: string; readonly connections: number } | 'stop'

export interface Noised {
  readonly answered: number
  readonly refused: number
  /** Refusals with 429 that did not say when to come again. */
  readonly withoutRetryAfter: number
  /** Other answers that are no success, and connections that broke. */
  readonly failed: number
  /** One of those. */
  readonly failure: string
}

export type FromNoisyClient = { readonly started: true } | { readonly noised: Noised }
