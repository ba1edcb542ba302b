// The contract between the listener and the console, which is a room above this one.
import type { BytesResponse, IncomingRequest } from '#virtualapi/request/exchange.ts'
import type { Handled } from './handle.ts'

/** Requests for paths that begin with this are the console's. */
export const consolePath = '/console'

export interface ConsoleDoor {
  /** Answers a request. Never rejects. */
  handle(request: IncomingRequest): Promise<Handled>
  /** The upgrade as the stages get it, or its refusal. Never rejects. */
  upgrade(request: IncomingRequest): Promise<UpgradeVerdict>
}

export type UpgradeVerdict =
  /** Call `finish` when the upgrade has ended. */
  { readonly admitted: IncomingRequest; readonly finish: () => void } | { readonly refused: BytesResponse }
