// What runs where, what waits, and the past day by hours.
import { getJson } from "./http.js";

export interface CapacityReport {
  asOf: string;
  pending: number;
  costPerHour: number;
  pools: { pool: string; capacity: string; running: number; nodes: number; costPerHour: number }[];
  attempts: {
    namespace: string; experiment: string; trial: number; attempt: number; node: string;
    pool: string; capacity: string; pricePerHour: number; startTime?: string;
  }[];
  queue: { namespace: string; experiment: string; pending: number; waiting: string }[];
  hours: { start: string; preemptions: number; cost: number; spotCost: number }[];
}

export function readCapacity(abort: AbortSignal): Promise<CapacityReport> {
  return getJson("api/v1/capacity", abort);
}
