"""The auxiliary language-model loss of GPT in fine-tuning."""
