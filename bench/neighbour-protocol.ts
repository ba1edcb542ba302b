// The messages between a measurement and its noisy-client.ts.

/** The requests with which one tenant floods the server. */
export const noises = ['creates', 'lists', 'bodies', 'watches'] as const
/** `updates`: of the objects of the measurement of watch-across. */
export type Noise = (typeof noises)[number] | 'updates'

export type ToNoisyClient =
  { readonly start: Noise; readonly kubeconfig: string; readonly connections: number } | 'stop'

export interface Noised {
  readonly answered: number
  readonly refused: number
  /** 429 answers without Retry-After. */
  readonly withoutRetryAfter: number
  /** Other answers that are not successes, and broken connections. */
  readonly failed: number
  /** An example of such a failure. */
  readonly failure: string
}

export type FromNoisyClient = { readonly started: true } | { readonly noised: Noised }
