export interface MutantResult {
  name: string;
  caught: boolean;
}
export function runMutants(_: unknown): Promise<MutantResult[]> {
  throw new Error('later');
}
